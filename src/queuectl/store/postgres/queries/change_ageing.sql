-- change_ageing: wait until no transaction ranks by the old rule any more, and let none begin until the new one is written: see
-- hold_ageing.sql. (SQLite has one writer.)
lock table queuectl.locks in exclusive mode
