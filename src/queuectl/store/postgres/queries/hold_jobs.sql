-- hold_jobs: lock jobs, so that they stay what they are until all is written. Nobody is waited for, so nobody can wait for us in a
-- circle: whoever is left out is seen to the next time. (SQLite has one writer.)
select seq, id, state, queue, priority, eligible_at, missed, run_at, unique_key
  from queuectl.jobs
 where seq = any(%(seqs)s)
   for no key update skip locked
