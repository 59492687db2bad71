-- hold_lines: until the end of this transaction nobody claims from those of these queues that have a limit by key, so that
-- whoever was set aside by a claim that did not see what we have done is seen by admit.sql. (SQLite has one writer.)
select name
  from queuectl.queues
 where name = any(%(queues)s)
   and per_key is not null
 order by name
   for update
