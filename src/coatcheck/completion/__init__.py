"""Telling: the job as its client sees it, waiting for its changes, and passing them on."""
