"""The project's own set-up: what is installed, and from which pins."""
