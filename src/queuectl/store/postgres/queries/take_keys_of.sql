-- take_keys_of: as take_keys.sql, the keys that some jobs have. Before their rows are locked, in the order that enqueue has.
-- (SQLite has one writer.)
select pg_advisory_xact_lock(1366647670, hash)
  from (
    select distinct hashtext(unique_key) as hash
      from queuectl.jobs
     where id = any(%(ids)s)
       and unique_key is not null
     order by hash
  ) as locks
