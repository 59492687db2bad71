-- cancel_running: record the wish. The worker that holds the job ends it; whatever it reports then, the wish wins.
update jobs
   set cancel_requested = 1,
       updated_at = max(:now, created_at)
 where seq = :seq
   and state = 'processing'
