"""A bookshop with five branches, whose stock reports take a while: the example that `make demo` shows."""
