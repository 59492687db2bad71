-- standing: what decides about the place and fate of jobs, read under the write lock before a person's command changes it.
select seq, id, state, queue, worker, token, log, priority, eligible_at, missed, run_at, ready, held, runs, updated_at,
       unique_key, key
  from jobs
 where id in (select value from json_each(:ids))
