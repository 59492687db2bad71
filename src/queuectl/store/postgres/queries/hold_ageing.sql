-- hold_ageing: until the end of this transaction the ageing rule does not change: ranks are written by that rule. A lock on the
-- table and on none of its rows (mode ROW SHARE), which transactions share with all but change_ageing.sql. Whatever locks a row of
-- this table holds it, too: hold_worker.sql, take_worker.sql. (SQLite has one writer.)
select id
  from queuectl.locks
 where false
   for key share
