-- server: what it is, whether it only follows another one, and the version of our schema.
select current_setting('server_version'), pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean, version
  from queuectl.meta
