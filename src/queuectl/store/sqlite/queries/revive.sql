-- revive: another chance, due now, in the old place of the line. The caller has checked the state in this transaction.
-- A cancel that came between two runs is forgotten: what is shown is the end of the latest run again, if there was one.
update jobs
   set state = 'pending',
       ready = held = 0,
       run_at = :now,
       rank = :rank,
       effective_priority = null,
       attempts = iif(state = 'failed', attempts, 0),
       crashes = iif(state = 'failed', crashes, 0),
       finished_at = iif(
           ending is null, (select finished_at from runs where job = jobs.seq and number = jobs.runs), finished_at
       ),
       error = iif(ending is null, (select error from runs where job = jobs.seq and number = jobs.runs), error),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state in ('failed', 'dead', 'cancelled')
