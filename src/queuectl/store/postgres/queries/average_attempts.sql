-- average_attempts: failed runs per job, over all jobs.
select avg(attempts)::float8
  from queuectl.jobs
