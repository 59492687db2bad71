-- take_worker: what others do to a worker. Waits for what it is just doing, see hold_worker.sql. (SQLite has one writer.)
select pg_advisory_xact_lock_shared(1366647668, 2),
       pg_advisory_xact_lock(1366647669, hashtext(%(worker)s))
