-- name: audit
-- Entries after a number, the oldest first. `has`: only those with this text in their targets.
select seq, at, actor, action, targets, before, after
  from audit
 where seq > :behind
   and at >= :since
   and (:has is null or instr(targets, :has))
 order by seq
 limit :limit

-- name: audit_newest
-- The same, the newest first.
select seq, at, actor, action, targets, before, after
  from audit
 where seq < :behind
   and at >= :since
   and (:has is null or instr(targets, :has))
 order by seq desc
 limit :limit

-- name: audit_before
-- The fields of jobs that users can change, for the audit log.
select id, command, argv, queue, priority, max_retries, timeout_ms, limits, run_at, held
  from jobs
 where id in (select value from json_each(:ids))
