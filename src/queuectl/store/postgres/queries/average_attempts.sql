-- average_attempts: failed runs per job, over all jobs but calls, as everywhere in these figures.
select avg(attempts)::float8
  from queuectl.jobs
 where queue <> 'queuectl.webhooks'
