-- Retention of those that have ended otherwise than completed, which jobs_completed has. All of them have a finished_at: that the
-- index asks for it keeps the planner from using it for statements that look for a dead job by its number.
create index jobs_ended on queuectl.jobs (state, finished_at)
 where state in ('dead', 'cancelled')
   and finished_at is not null;
