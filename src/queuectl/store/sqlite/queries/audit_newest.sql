-- audit_newest: the same, the newest first.
select seq, at, record, hash
  from audit
 where seq < :behind
   and at >= :since
   and (:has is null or instr(record, :has))
 order by seq desc
 limit :limit
