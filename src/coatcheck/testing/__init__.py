"""For tests: a clock moved by hand, fault points, one history format, and the suite every store engine must pass."""
