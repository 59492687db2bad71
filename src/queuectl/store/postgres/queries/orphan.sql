-- orphan: a parent can no longer satisfy these: they are called off. They have never run.
-- They are locked, and what they are is known (hold_jobs.sql): were the state named too, the planner might go through all of it.
update queuectl.jobs
   set state = 'cancelled',
       effective_priority = told.effective_priority,
       error = told.error,
       finished_at = greatest(%(now)s, created_at),
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(told)s::json) as told (seq bigint, error text, effective_priority bigint)
 where jobs.seq = told.seq
