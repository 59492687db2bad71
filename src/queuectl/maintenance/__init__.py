"""Keeping the house: duties of one step each, driven by a worker's loop or by a command."""
