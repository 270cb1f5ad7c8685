"""One commit: the only caller of the store's accept_job."""
