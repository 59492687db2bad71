-- name: audit
-- Entries after a number, the oldest first. `has` and `who`: only those with this text in their
-- targets or their actor. `what`: only those with this action, or one of this group (`whats`).
select seq, at, actor, action, targets, before, after
  from audit
 where seq > :behind
   and at >= :since
   and (:has is null or instr(targets, :has))
   and (:who is null or instr(actor, :who))
   and (:what is null or action = :what or action like :whats)
 order by seq
 limit :limit

-- name: audit_newest
-- The same, the newest first.
select seq, at, actor, action, targets, before, after
  from audit
 where seq < :behind
   and at >= :since
   and (:has is null or instr(targets, :has))
   and (:who is null or instr(actor, :who))
   and (:what is null or action = :what or action like :whats)
 order by seq desc
 limit :limit

-- name: audit_before
-- The fields of jobs that users can change, for the audit log.
select id, command, argv, queue, priority, max_retries, timeout_ms, limits, run_at, held
  from jobs
 where id in (select value from json_each(:ids))
