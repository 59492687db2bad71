-- unrun: the policy of their host was against these jobs, so that the claims which were just settled have not been runs: they are not
-- counted, and have no place in the history. An earlier run was archived at the claim; what the row shows of it is when that began.
-- The number of the run is asked, too: what is sent again after a lost connection is taken back once.
update queuectl.jobs
   set runs = runs - 1,
       started_at = (
           select coalesce(runs.started_at, jobs.started_at)
             from queuectl.runs
            where job = jobs.seq
              and number = jobs.runs - 1
       ),
       wait_ms = case when runs > 1 then wait_ms end,
       duration_ms = null,
       log = case when runs > 1 then log end
  from unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(runs)s::integer[]) as told (seq, token, run)
 where jobs.seq = told.seq
   and last_token = told.token
   and runs = told.run
   and jobs.token is null
   and ending is null
