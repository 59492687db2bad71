-- next_due: when the next job comes due. (PostgreSQL: outlook.sql.)
select min(run_at)
  from jobs indexed by jobs_due
 where ready = 0
   and held = 0
   and state in ('pending', 'failed')
