-- Which of a worker's runs somebody called off: it asks at every ring and every poll. By jobs_running it would step over all that it
-- has run since the oldest transaction that is open, in vain. Few jobs are ever in this one.
create index jobs_called_off on queuectl.jobs (worker) where cancel_requested and state = 'processing';
