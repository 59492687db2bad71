-- earlier_starts: of a queue with a rate, the starts of these numbers, and when they were. As in limits.sql.
select earlier.number,
       coalesce(
           case when jobs.runs = earlier.run and jobs.started_at between earlier.at and %(now)s then jobs.started_at end,
           case when runs.started_at between earlier.at and %(now)s then runs.started_at end,
           earlier.at
       ),
       jobs.seq is null or jobs.runs <> earlier.run or jobs.state <> 'processing' or jobs.pid is not null
  from queuectl.starts as earlier
  left join queuectl.jobs
    on jobs.seq = earlier.job
  left join queuectl.runs
    on runs.job = earlier.job
   and runs.number = earlier.run
 where earlier.queue = %(queue)s
   and earlier.number between %(first)s and %(last)s
