-- unrun: the policy of its host was against this job, so that the claim which was just settled has not been a run: it is not counted,
-- and has no place in the history. An earlier run was archived at the claim; what the row shows of it is when that began.
update jobs
   set runs = runs - 1,
       started_at = (select coalesce(runs.started_at, jobs.started_at) from runs where job = jobs.seq and number = jobs.runs - 1),
       wait_ms = iif(runs > 1, wait_ms, null),
       duration_ms = null,
       log = iif(runs > 1, log, null)
 where seq = :seq
   and state = 'dead'
   and ending is null
