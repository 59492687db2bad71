-- hold_runs: the runs of a worker that is to be rescued, locked in order: a cancel that comes now waits, and finds them ended.
-- (SQLite has one writer.)
select seq
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
 order by seq
   for update
