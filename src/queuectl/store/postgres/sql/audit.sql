-- name: audit
-- Entries after a number, the oldest first. `has` and `who`: only those with this text in their
-- targets or their actor. `what`: only those with this action, or one of this group (`whats`).
select seq, at, actor, action, targets, before, after
  from queuectl.audit
 where seq > %(behind)s
   and at >= %(since)s
   and (%(has)s::text is null or strpos(targets, %(has)s) > 0)
   and (%(who)s::text is null or strpos(actor, %(who)s) > 0)
   and (%(what)s::text is null or action = %(what)s or action like %(whats)s)
 order by seq
 limit %(limit)s

-- name: audit_newest
-- The same, the newest first.
select seq, at, actor, action, targets, before, after
  from queuectl.audit
 where seq < %(behind)s
   and at >= %(since)s
   and (%(has)s::text is null or strpos(targets, %(has)s) > 0)
   and (%(who)s::text is null or strpos(actor, %(who)s) > 0)
   and (%(what)s::text is null or action = %(what)s or action like %(whats)s)
 order by seq desc
 limit %(limit)s

-- name: audit_before
-- The fields of jobs that users can change, for the audit log.
select id, command, argv, queue, priority, max_retries, timeout_ms, limits, run_at, held
  from queuectl.jobs
 where id = any(%(ids)s)
