-- heads_behind: the first few of one line behind a place of it, with their keys, for a queue with a limit by key: some of those
-- before may have no room. Locks nothing, as heads.sql. (SQLite: ready_behind.sql.)
select jobs.rank, jobs.seq, jobs.queue, jobs.key, jobs.places
  from queuectl.jobs
 where jobs.ready
   and not jobs.aside
   and (jobs.queue, jobs.rank, jobs.seq) > (%(queue)s, %(rank)s::bigint, %(seq)s::bigint)
   and jobs.queue <= %(queue)s
 order by jobs.queue, jobs.rank, jobs.seq
 limit %(limit)s
