-- audit_newest: the same, the newest first.
select seq, at, record, hash
  from queuectl.audit
 where seq < %(behind)s
   and at >= %(since)s
   and (%(has)s::text is null or strpos(record, %(has)s) > 0)
 order by seq desc
 limit %(limit)s
