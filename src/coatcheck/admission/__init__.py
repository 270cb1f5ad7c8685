"""May it enter? Decides on a submission and writes nothing."""
