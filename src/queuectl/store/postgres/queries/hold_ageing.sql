-- hold_ageing: until the end of this transaction nobody changes how waiting is rewarded: ranks are written by that rule.
-- A lock of its own, in memory only, that all share but for whoever changes the rule, see change_ageing.sql. (All locks of this
-- kind are 0x51756374, "Quct", and a number: 1 for migrations, 2 for this; the next one up is for workers, by name.)
-- (SQLite has one writer.)
select pg_advisory_xact_lock_shared(1366647668, 2)
