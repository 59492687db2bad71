"""The database: one interface, one package a dialect, plain SQL in files."""
