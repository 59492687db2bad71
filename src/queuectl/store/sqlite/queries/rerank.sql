-- rerank: the SQL twin of job/rank.py, for everybody who waits or may wait again. Runs once, when `ageing` changes.
-- In two parts, each with an index of its own.
update jobs
   set rank = case :ageing
                  when 'off' then -priority
                  when 'enqueues' then seq + missed - priority
                  else eligible_at - priority * :step_ms
              end
 where (state in ('blocked', 'pending', 'failed') and state <> 'processing')
    or seq in (select seq from jobs indexed by jobs_running where state = 'processing')
