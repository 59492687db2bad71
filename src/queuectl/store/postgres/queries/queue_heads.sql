-- queue_heads: the first ready job of each queue (null: of all), locked or not: before it there is nothing. The cursor of later claims. (SQLite has no dead rows.)
with {valid_cursors}
select cursors.turn, head.rank, head.seq
  from cursors
  left join lateral (
    (
        select rank, seq
          from queuectl.jobs
         where cursors.queue is null
           and queue <> 'queuectl.webhooks'
           and ready
           and not aside
           and (rank, seq) > (cursors.rank, cursors.seq)
         order by rank, seq
         limit 1
    )
    union all
    (
        select rank, seq
          from queuectl.jobs
         where ready
           and not aside
           and (jobs.queue, jobs.rank, jobs.seq) > (cursors.queue, cursors.rank, cursors.seq)
           and jobs.queue <= cursors.queue
         order by jobs.queue, jobs.rank, jobs.seq
         limit 1
    )
  ) as head on true
