"""The store in one SQLite file: needs no server, serves one machine."""
