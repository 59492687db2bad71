-- unclaim: jobs that were just settled were given back by their worker, which had not begun them: the claims have not been runs. A
-- job shows the run before it again, which was archived at the claim, or none. The number of the run is asked, too: what is sent
-- again after a lost connection is taken back once.
with restored as (
    update queuectl.jobs
       set runs = jobs.runs - 1,
           last_token = earlier.token,
           worker = earlier.worker,
           host = earlier.host,
           pid = earlier.pid,
           started_at = earlier.started_at,
           finished_at = earlier.finished_at,
           duration_ms = earlier.duration_ms,
           exit_code = earlier.exit_code,
           signal = earlier.signal,
           error = earlier.error,
           ending = earlier.ending,
           log_from = earlier.log_from,
           log_to = earlier.log_to,
           usage = earlier.usage,
           wait_ms = case when jobs.runs > 1 then wait_ms end,
           log = case when jobs.runs > 1 then log end
      from unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(runs)s::integer[]) as told (seq, token, run)
      left join queuectl.runs as earlier
        on earlier.job = told.seq
       and earlier.number = told.run - 1
     where jobs.seq = told.seq
       and jobs.last_token = told.token
       and jobs.runs = told.run
       and jobs.token is null
       and jobs.ending is null
    returning jobs.seq, jobs.runs
)
delete from queuectl.runs
 using restored
 where runs.job = restored.seq
   and runs.number = restored.runs
