"""Secrets of this host: where they lie, whom to ask for them, and what a worker does so that nobody else gets to know them."""
