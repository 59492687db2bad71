-- unblock: its parents have ended as it needs. It could first run now, or when its own time comes.
update jobs
   set state = 'pending',
       ready = held = 0 and :run_at <= :now,
       run_at = :run_at,
       eligible_at = :run_at,
       rank = :rank,
       updated_at = max(:now, created_at)
 where seq = :seq
   and state = 'blocked'
