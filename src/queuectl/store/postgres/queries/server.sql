-- server: its version, whether it is read-only, the version of our schema, and the settings that make a commit durable.
-- (SQLite: pragma user_version, and a library in the place of a server.)
select current_setting('server_version'), pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean, version,
       current_setting('synchronous_commit'), current_setting('fsync')
  from queuectl.meta
