-- served: which queues are served, one row a set; null: all. One that is stopping claims nothing more.
-- (SQLite reads it from workers.sql.)
select distinct queues
  from queuectl.workers
 where state = 'running'
