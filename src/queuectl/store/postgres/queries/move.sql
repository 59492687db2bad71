-- move: the jobs of a queue that wait, all or those of some ids, go to another and keep their rank. Not in the
-- order of ids as elsewhere, which would go through all jobs there ever were: who clashes is run again.
with found as (
    select seq
      from queuectl.jobs
     where queue = %(queue)s
       and state in ('blocked', 'pending', 'failed')
       and state <> 'processing'
       and (%(ids)s::text[] is null or id = any(%(ids)s::text[]))
       for update
)
update queuectl.jobs
   set queue = %(to)s,
       aside = false,
       ready_since = pg_current_xact_id(),
       updated_at = greatest(%(now)s, created_at)
  from found
 where jobs.seq = found.seq
returning jobs.seq, jobs.id, jobs.state, jobs.key
