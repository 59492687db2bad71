-- start: the processes of claimed jobs exist. The token says all: a job has one exactly while it runs. (Were the state named
-- too, the planner might go through all that run, by the index on those, to find one.)
update queuectl.jobs
   set pid = start.pid,
       log_from = start.log_from,
       started_at = greatest(start.started_at, created_at),
       wait_ms = greatest(0, start.started_at - greatest(created_at, run_at))
  from json_to_recordset(%(starts)s::json)
    as start (seq bigint, token text, pid bigint, log_from bigint, started_at bigint)
 where jobs.seq = start.seq
   and jobs.token = start.token
   and not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')
