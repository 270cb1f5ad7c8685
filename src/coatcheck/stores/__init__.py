"""The engines: independent siblings, each complete by itself."""
