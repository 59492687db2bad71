-- hold_keys: until the end of this transaction nobody takes all keys at once (see take_all_keys.sql); keys one by one may be taken.
-- (SQLite has one writer.)
select pg_advisory_xact_lock_shared(1366647668, 3)
