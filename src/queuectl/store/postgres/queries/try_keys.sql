-- try_keys: as hold_keys.sql, but nobody is waited for. (SQLite has one writer.)
select pg_try_advisory_xact_lock_shared(1366647668, 3)
