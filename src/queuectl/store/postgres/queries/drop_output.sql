-- drop_output: remove what ends at or before a byte of the output of its run. Changes nothing if the job has passed to somebody
-- else or if the worker is fenced.
delete from queuectl.output
 using unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(keep_from)s::bigint[]) as told (seq, token, keep_from)
  join queuectl.jobs on jobs.seq = told.seq
   and jobs.token = told.token
 where output.job = jobs.seq
   and output.run = jobs.runs
   and output.at < told.keep_from
   and output.at + length(output.data) <= told.keep_from
   and not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')
