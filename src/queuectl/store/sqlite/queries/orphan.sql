-- orphan: a parent can no longer satisfy it: it is called off. It has never run.
update jobs
   set state = 'cancelled',
       effective_priority = :effective_priority,
       error = :error,
       finished_at = max(:now, created_at),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state = 'blocked'
