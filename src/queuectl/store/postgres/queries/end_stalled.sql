-- end_stalled: a command that was stopped in the middle of what it sends leaves a transaction that does nothing, and yet does not
-- count as idle. Those that have waited for the rest of it for so long are rolled back, and their sessions end. Not a stream of
-- rows: that waits for its client between any two of them. Only sessions that this role may end, so that none spoils the rest.
-- (SQLite has no sessions: who is stopped keeps the lock of the file.)
select pg_terminate_backend(pid)
  from pg_stat_activity
 where datname = current_database()
   and pid <> pg_backend_pid()
   and state = 'active'
   and wait_event_type = 'Client'
   and wait_event = 'ClientRead'
   and query_start < clock_timestamp() - %(stalled_ms)s * interval '1 ms'
   and query !~* '^copy'
   and (usename = current_user or pg_has_role('pg_signal_backend', 'usage'))
   and exists (
       select 1
         from pg_locks
         join pg_class
           on pg_class.oid = pg_locks.relation
        where pg_locks.pid = pg_stat_activity.pid
          and pg_class.relnamespace = to_regnamespace('queuectl')
   )
