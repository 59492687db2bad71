-- revive: another chance, due now, in the old place of the line. The caller has checked the state in this transaction.
update jobs
   set state = 'pending',
       ready = held = 0,
       run_at = :now,
       rank = :rank,
       effective_priority = null,
       attempts = iif(state = 'failed', attempts, 0),
       crashes = iif(state = 'failed', crashes, 0),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state in ('failed', 'dead', 'cancelled')
