-- running_keys: who runs with which key, where keys are limited.
select jobs.queue, jobs.key, jobs.id
  from queuectl.jobs
  left join queuectl.queues
    on queues.name = jobs.queue
 where jobs.state = 'processing'
   and jobs.key is not null
   and (jobs.places is not null or queues.per_key is not null)
