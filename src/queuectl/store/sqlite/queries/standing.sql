-- standing: what decides about a job's place and fate, read under the write lock before a person's command changes it.
select seq, state, queue, worker, token, priority, eligible_at, missed, log
  from jobs
 where id = :id
