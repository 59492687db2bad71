-- unblock: the parents of these have ended as they need. They could first run now, or when their own time comes.
-- They are locked, and what they are is known (hold_jobs.sql): were the state named too, the planner might go through all of it.
update queuectl.jobs
   set state = 'pending',
       ready = not held and told.run_at <= %(now)s,
       ready_since = pg_current_xact_id(),
       run_at = told.run_at,
       eligible_at = told.run_at,
       rank = told.rank,
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(told)s::json) as told (seq bigint, run_at bigint, rank bigint)
 where jobs.seq = told.seq
