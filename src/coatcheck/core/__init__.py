"""What is true: jobs, states, policies and outcomes as plain values. No I/O, no clock, no randomness."""
