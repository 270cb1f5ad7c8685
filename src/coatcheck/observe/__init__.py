"""Seeing: metrics and logs, their names and units."""
