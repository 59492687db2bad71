-- running_keys: who runs with which key, in queues with a limit by key.
select queues.name, jobs.key, jobs.id
  from queues
  join jobs indexed by jobs_running_key
    on jobs.queue = queues.name
   and jobs.key is not null
   and jobs.state = 'processing'
 where queues.per_key is not null
 order by jobs.seq
