-- name: audit
-- Entries after a number, the oldest first. `has`: only those with this text in their targets.
select seq, at, actor, action, targets, before, after
  from queuectl.audit
 where seq > %(behind)s
   and at >= %(since)s
   and (%(has)s::text is null or strpos(targets, %(has)s) > 0)
 order by seq
 limit %(limit)s

-- name: audit_newest
-- The same, the newest first.
select seq, at, actor, action, targets, before, after
  from queuectl.audit
 where seq < %(behind)s
   and at >= %(since)s
   and (%(has)s::text is null or strpos(targets, %(has)s) > 0)
 order by seq desc
 limit %(limit)s

-- name: audit_before
-- The fields of jobs that users can change, for the audit log.
select id, command, argv, queue, priority, max_retries, timeout_ms, limits, run_at, held
  from queuectl.jobs
 where id = any(%(ids)s)
