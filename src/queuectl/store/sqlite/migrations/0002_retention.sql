-- Retention of those that have ended otherwise than completed, which jobs_completed has.
create index jobs_ended on jobs (state, finished_at) where state = 'dead' or state = 'cancelled';
