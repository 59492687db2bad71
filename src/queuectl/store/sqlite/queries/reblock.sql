-- reblock: the parent that called it off was given another chance, and so is it.
update jobs
   set state = 'blocked',
       rank = :rank,
       effective_priority = null,
       error = null,
       finished_at = null,
       updated_at = max(:now, created_at)
 where seq = :seq
   and state = 'cancelled'
