-- present_jobs: which of these jobs there are. (SQLite joins them in undecided.sql.)
select seq
  from queuectl.jobs
 where seq = any(%(seqs)s)
