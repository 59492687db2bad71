-- add_output: keep a piece of what a run prints. Changes nothing if the job has passed to somebody else. Told twice, since the
-- first answer got lost, the second time more may have been printed: the longer one stays.
insert into output (job, run, at, data)
select seq, runs, :at, :data
  from jobs
 where seq = :seq
   and token = :token
   and state = 'processing'
    on conflict (job, run, at) do update
   set data = excluded.data
 where length(excluded.data) > length(output.data)
