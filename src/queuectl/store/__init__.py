"""The database: one protocol, one package a dialect, plain SQL in files."""
