-- hold_worker: what the worker itself does. Until the end of this transaction nobody rescues or forgets it (take_worker.sql):
-- what it claims meanwhile would be the job of a worker that nobody knows. Locks in memory; SQLite has one writer anyway.
-- Also which transactions are over now: what comes to the line after is looked at apart by the next claim.
select pg_current_snapshot()::text,
       pg_advisory_xact_lock_shared(1366647668, 2),
       pg_advisory_xact_lock_shared(1366647669, hashtext(%(worker)s))
