-- dead_by_error: what jobs are dead of, the most frequent first, of those that died last: to look at all of them would take as long as
-- there are many. With the one of each that died last. (SQLite takes that from the row that has the maximum.)
with latest as (
    select error, queue, seq, finished_at
      from queuectl.jobs
     where state = 'dead'
       and queue <> 'queuectl.webhooks'
       and finished_at is not null
     order by finished_at desc
     limit %(most)s
),
deaths as (
    select left(coalesce(error, ''), %(shown)s) as why,
           case when min(queue) = max(queue) then min(queue) end as queue,
           count(*) as jobs,
           max(array[finished_at, seq]) as newest
      from latest
     group by why
     order by jobs desc, max(finished_at) desc, why
     limit %(limit)s
)
select why, deaths.queue, deaths.jobs, id, newest[1]
  from deaths
  join queuectl.jobs on seq = newest[2]
 order by deaths.jobs desc, newest[1] desc, why
