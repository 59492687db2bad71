-- reblock: the parent that called these off was given another chance, and so are they.
-- They are locked, and what they are is known (hold_jobs.sql): were the state named too, the planner might go through all of it.
update queuectl.jobs
   set state = 'blocked',
       rank = told.rank,
       effective_priority = null,
       error = null,
       finished_at = null,
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(told)s::json) as told (seq bigint, rank bigint)
 where jobs.seq = told.seq
