-- changed: which transactions are over, of the whole server: two equal answers mean that nothing was written between them.
-- And who is asked: another store may stand in this one's place, or a newer queuectl may have changed it.
-- (SQLite: pragma data_version.)
select pg_current_snapshot()::text, id, version
  from queuectl.meta
