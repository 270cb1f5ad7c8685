"""What tests of a real server need: apps to serve, processes to serve them, and clients to ask them."""
