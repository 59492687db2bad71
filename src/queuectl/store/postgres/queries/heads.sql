-- heads: of some lines the first few, each at most so many, in order. Locks nothing: who takes some of them locks those, and finds
-- out then whether somebody was faster. (SQLite asks line by line, see its ready.sql.) Not those that limit their key themselves: of
-- a line in which there were some when the caller looked it takes none from here, and who has come since waits for the next look.
select line.rank, line.seq, line.queue
  from unnest(%(queues)s::text[], %(places)s::bigint[]) as told (queue, places)
 cross join lateral (
    select jobs.rank, jobs.seq, jobs.queue
      from queuectl.jobs
     where jobs.ready
       and not jobs.aside
       and jobs.places is null
       and (jobs.queue, jobs.rank, jobs.seq) > (told.queue, -9223372036854775808, 0)
       and jobs.queue <= told.queue
     order by jobs.queue, jobs.rank, jobs.seq
     limit told.places
 ) as line
