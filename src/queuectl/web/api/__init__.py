"""What the API can do: one module a noun, and one table of all operations in table.py."""
