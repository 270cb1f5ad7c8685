"""Cleaning: what must happen to jobs although nobody asks for it."""
