-- add_output: keep pieces of what runs print. Changes nothing if the job has passed to somebody else (the token says all, see
-- start.sql) or if the worker is fenced. Told twice, since the first answer got lost, the second time more may have been
-- printed: the longer one stays.
insert into queuectl.output (job, run, at, data)
select jobs.seq, jobs.runs, told.at, told.data
  from unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(ats)s::bigint[], %(data)b::bytea[])
    as told (seq, token, at, data)
  join queuectl.jobs on jobs.seq = told.seq
   and jobs.token = told.token
 where not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')
    on conflict (job, run, at) do update
   set data = excluded.data
 where length(excluded.data) > length(output.data)
