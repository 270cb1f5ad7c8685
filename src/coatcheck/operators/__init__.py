"""WHO MAY CHANGE IT: what operators do, the same from the command line and over HTTP, each change in the audit log."""
