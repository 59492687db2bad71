-- cancel_running: record the wish. The worker that holds the job ends it; whatever it reports then, the wish wins.
update queuectl.jobs
   set cancel_requested = true,
       updated_at = greatest(%(now)s, created_at)
 where seq = %(seq)s
   and token = %(token)s
