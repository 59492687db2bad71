-- amend: change a job that waits. What is null stays as it is; a timeout of 0 means none. The caller has read where the job
-- stands in this transaction, and says where it stands now.
update jobs
   set command = iif(:argv is null, coalesce(:command, command), null),
       argv = iif(:command is null, coalesce(:argv, argv), null),
       queue = coalesce(:queue, queue),
       priority = :priority,
       rank = :rank,
       eligible_at = :eligible_at,
       run_at = :run_at,
       ready = :ready,
       aside = 0,
       held = :held,
       max_retries = coalesce(:max_retries, max_retries),
       first_is_free = coalesce(:first_is_free, first_is_free),
       timeout_ms = nullif(coalesce(:timeout_ms, timeout_ms), 0),
       secrets = nullif(coalesce(:secrets, secrets), '[]'),
       hooks = iif(:hooks is null, hooks, nullif(json_patch(coalesce(hooks, '{}'), :hooks), '{}')),
       limits = iif(:limits is null, limits, nullif(json_patch(coalesce(limits, '{}'), :limits), '{}')),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state in ('blocked', 'pending', 'failed')
