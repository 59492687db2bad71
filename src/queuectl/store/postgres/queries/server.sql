-- server: what it is, whether it only follows another one, and the version of our schema.
-- (SQLite: pragma user_version, and a library in the place of a server.)
select current_setting('server_version'), pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean, version
  from queuectl.meta
