-- rerank: the SQL twin of job/rank.py, for everybody who waits or may wait again. Runs once, when `ageing` changes.
update queuectl.jobs
   set rank = case %(ageing)s
                  when 'off' then -priority
                  when 'enqueues' then seq + missed - priority
                  else eligible_at - priority * %(step_ms)s::bigint
              end,
       ready_since = pg_current_xact_id()
 where state in ('blocked', 'pending', 'failed', 'processing')
