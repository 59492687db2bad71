"""Secrets of this host: files, an external provider, and the resolver that a worker uses."""
