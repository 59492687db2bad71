-- running_keys: who runs with which key, where keys are limited.
select queue, key, id
  from jobs indexed by jobs_running_key
 where key is not null
   and state = 'processing'
   and (places is not null or exists (select 1 from queues where name = jobs.queue and per_key is not null))
 order by seq
