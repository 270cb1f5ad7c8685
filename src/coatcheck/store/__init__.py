"""The promise: what every engine does for every caller, in verbs and frozen records."""
