-- heartbeat: a worker says that it lives. `beats` is what others watch: it needs no clock. What it has done is added up.
with done as (
    delete from queuectl.done
     where worker = %(id)s
    returning jobs
)
update queuectl.workers
   set heartbeat_at = greatest(%(now)s, started_at),
       beats = beats + 1,
       jobs_done = jobs_done + coalesce((select sum(jobs) from done), 0),
       slots = %(slots)s,
       state = %(state)s
 where id = %(id)s
   and state <> 'lost'
