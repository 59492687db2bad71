-- served: which queues are served, one row a set; null: all. One that is stopping claims nothing more.
select distinct queues
  from queuectl.workers
 where state = 'running'
