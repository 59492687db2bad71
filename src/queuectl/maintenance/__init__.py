"""Periodic tasks of a worker: each takes one step at a time, and never waits."""
