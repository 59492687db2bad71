-- standing: what decides about a job's place and fate, locked before a person's command changes it.
select seq, state, queue, worker, token, priority, eligible_at, missed, log
  from queuectl.jobs
 where id = %(id)s
   for update
