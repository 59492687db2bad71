-- served: which queues are served, one row a set; null: all.
select distinct queues
  from queuectl.workers
