-- running_keys: who runs with which key, in queues with a limit by key.
select jobs.queue, jobs.key, jobs.id
  from queuectl.jobs
  join queuectl.queues
    on queues.name = jobs.queue
 where jobs.state = 'processing'
   and jobs.key is not null
   and queues.per_key is not null
