-- revive: retry jobs, due now, at their old position in the queue. The caller has checked the states in this transaction.
-- `is true` keeps the planner from an index of all jobs in these states.
-- A cancel that came between two runs is forgotten: what is shown is the end of the latest run again, if there was one.
update queuectl.jobs
   set state = 'pending',
       ready = not held,
       ready_since = pg_current_xact_id(),
       run_at = %(now)s,
       rank = chosen.rank,
       effective_priority = null,
       attempts = case when state = 'failed' then attempts else 0 end,
       crashes = case when state = 'failed' then crashes else 0 end,
       finished_at = case
           when ending is not null then finished_at
           else (select finished_at from queuectl.runs where job = jobs.seq and number = jobs.runs)
       end,
       error = case
           when ending is not null then error
           else (select error from queuectl.runs where job = jobs.seq and number = jobs.runs)
       end,
       updated_at = greatest(%(now)s, created_at)
  from unnest(%(seqs)s::bigint[], %(ranks)s::bigint[]) as chosen (seq, rank)
 where jobs.seq = any(%(seqs)s)
   and jobs.seq = chosen.seq
   and (state in ('failed', 'dead', 'cancelled')) is true
