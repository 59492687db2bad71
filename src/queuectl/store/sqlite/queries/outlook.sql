-- outlook: what an exchange has to know before it writes, in one statement: how waiting is rewarded, the sequence number
-- given out last, the state of the worker if the store knows it, when the next job comes due, whether any queue is paused or
-- limited, whether some jobs have not been told what became of their parents, whether there are jobs with parents at all, and
-- whether any job limits its key itself. (PostgreSQL finds out within the statements of its one round trip.)
select (select value from config where key = 'ageing'),
       coalesce((select seq from sqlite_sequence where name = 'jobs'), 0),
       (select state from workers where id = ?),
       (select min(run_at) from jobs indexed by jobs_due where ready = 0 and held = 0 and state in ('pending', 'failed')),
       exists (
           select 1 from queues where paused or concurrency is not null or rate_starts is not null or per_key is not null
       ),
       exists (select 1 from undecided),
       exists (select 1 from edges where parent > 0),
       (
           select min(queue)
             from jobs indexed by jobs_places
            where places is not null
              and state in ('blocked', 'pending', 'processing', 'failed')
       ) is not null
