"""The HTTP edge: requests in, answers and problems out."""
