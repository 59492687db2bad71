-- present_jobs: which of these jobs there are.
select seq
  from queuectl.jobs
 where seq = any(%(seqs)s)
