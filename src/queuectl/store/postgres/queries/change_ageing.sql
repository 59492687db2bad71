-- change_ageing: wait until nobody ranks by the old rule any more, and let nobody begin until the new one is written.
-- (SQLite has one writer.)
select pg_advisory_xact_lock(1366647668, 2)
