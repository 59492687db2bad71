-- outlook: what an exchange has to know before it writes, in one statement: how waiting is rewarded, the sequence number
-- given out last, whether the store knows the worker, and when the next job comes due.
select (select value from config where key = 'ageing'),
       coalesce((select seq from sqlite_sequence where name = 'jobs'), 0),
       exists (select 1 from workers where id = ?),
       (select min(run_at) from jobs indexed by jobs_due where ready = 0 and held = 0 and state in ('pending', 'failed'))
