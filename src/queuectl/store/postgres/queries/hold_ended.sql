-- hold_ended: lock jobs that are to be removed, in one order. Asked before prune.sql, which then sees all that came to wait for one
-- of them while its row was waited for. (SQLite has one writer.)
select 1
  from queuectl.jobs
 where id = any(%(ids)s)
 order by id
   for update
