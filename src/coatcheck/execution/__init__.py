"""Doing it: a control side that keeps leases and outcomes, runners that run user code, and the channel between."""
