"""The store in PostgreSQL: the same queue for many machines."""
