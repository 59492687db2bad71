-- candidates_from_cursor: as candidates_any_queue and candidates_named_queues (a null among the queues means all), but behind the cursor of
-- each queue, for claim.sql. While another session holds a transaction open, dead rows cannot be removed, and without a cursor each claim
-- steps over all of them. (SQLite has no dead rows.)
{valid_cursors},
any_queue as (
    select 1::bigint as turn, jobs.*
      from queuectl.jobs
     where ready
       and not aside
       and queue <> 'queuectl.webhooks'
       and (rank, seq) > ((select rank from cursors where queue is null), (select seq from cursors where queue is null))
       and (select is_open and is_unlimited from gate)
     order by rank, seq
     limit %(limit)s
       for update skip locked
),
named_queues as (
    select cursors.turn, first.*
      from cursors
     cross join lateral (
        select *
          from queuectl.jobs
         where ready
           and not aside
           and (jobs.queue, jobs.rank, jobs.seq) > (cursors.queue, cursors.rank, cursors.seq)
           and jobs.queue <= cursors.queue
           and (select is_open and is_unlimited from gate)
         order by jobs.queue, jobs.rank, jobs.seq
         limit %(limit)s
           for update skip locked
     ) as first
     limit %(limit)s
),
candidates as (
    select * from any_queue
    union all
    select * from named_queues
)
