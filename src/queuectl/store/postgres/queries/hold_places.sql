-- hold_places: until the end of this transaction nobody else claims from, or admits to, those of these queues (null: all) whose
-- jobs say themselves how many of their key may run. Not by a row of `queues`: such a queue need not have one. Behind hold_limits.sql and
-- hold_lines.sql, and in one order, so that nobody waits for one who waits for them. (SQLite has one writer.)
with recursive step (queue) as (
    (
        select queue
          from queuectl.jobs
         where places is not null
           and state in ('blocked', 'pending', 'processing', 'failed')
         order by queue
         limit 1
    )
    union all
    select (
        select jobs.queue
          from queuectl.jobs
         where jobs.places is not null
           and jobs.state in ('blocked', 'pending', 'processing', 'failed')
           and jobs.queue > step.queue
         order by jobs.queue
         limit 1
    )
      from step
     where step.queue is not null
),
told as (
    select queue, 2048 + (hashtext(queue) & 1023) as lock
      from step
     where queue is not null
       and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
),
taken as (
    select id
      from queuectl.locks
     where id = any(array(select lock from told))
     order by id
       for update
)
select queue
  from told
 where lock in (select id from taken)
