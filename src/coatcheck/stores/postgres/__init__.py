"""The shared engine: one PostgreSQL database for any number of processes and hosts."""
