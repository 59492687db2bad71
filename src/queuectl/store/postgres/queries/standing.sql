-- standing: what decides about the place and fate of jobs, locked before a person's command changes it.
select seq, id, state, queue, worker, token, log, priority, eligible_at, missed, run_at, ready, held, runs, updated_at,
       unique_key, key
  from queuectl.jobs
 where id = any(%(ids)s)
 order by id
   for update
