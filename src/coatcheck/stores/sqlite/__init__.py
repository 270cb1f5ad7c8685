"""The embedded engine: one SQLite file, durable at every commit."""
