-- prune: remove a job that has ended by a moment; its history, output, tags and edges go with it. One that somebody waits for stays
-- until all that wait have been told.
delete from jobs
 where id = :id
   and state in ('completed', 'dead', 'cancelled')
   and finished_at <= :before
   and not exists (select 1 from edges where parent = jobs.seq and state = 'waiting')
returning queue, state, log, finished_at, duration_ms, wait_ms
