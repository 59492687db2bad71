-- candidates_any_queue: the first jobs of all queues, for claim.sql. (SQLite: ready.sql, queue by queue.)
candidates as (
    select 1::bigint as turn, jobs.*
      from queuectl.jobs
     where ready
       and not aside
       and queue <> 'queuectl.webhooks'
       and (select is_open and is_unlimited from gate)
     order by rank, seq
     limit %(limit)s
       for update skip locked
)
