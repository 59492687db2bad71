-- dead_by_error: what jobs are dead of, the most frequent first, of those that died last: to look at all of them would take as long as
-- there are many. With the one max() SQLite takes the other columns from the row that has it: the one that died last.
select substr(coalesce(error, ''), 1, :shown) as why,
       case when count(distinct queue) = 1 then queue end,
       count(*) as jobs,
       id,
       max(finished_at) as at
  from (
      select error, queue, id, finished_at
        from jobs indexed by jobs_ended
       where state = 'dead'
         and queue <> 'queuectl.webhooks'
       order by finished_at desc
       limit :most
  )
 group by why
 order by jobs desc, at desc, why
 limit :limit
