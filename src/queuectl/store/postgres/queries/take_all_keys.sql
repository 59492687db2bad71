-- take_all_keys: the lock of every unique key there is or may be, for a batch with so many that the server might run out of
-- room for the locks of each (see take_keys.sql). (SQLite has one writer.)
select pg_advisory_xact_lock(1366647668, 3)
