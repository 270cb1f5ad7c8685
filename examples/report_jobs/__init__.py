"""A seed merchant whose orders and their exports commit together: the example that `make demo-reports` shows."""
