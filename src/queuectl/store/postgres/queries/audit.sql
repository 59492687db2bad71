-- audit: the records behind a place in the chain, the oldest first. `has`: only those with this text somewhere in them.
select seq, at, record, hash
  from queuectl.audit
 where seq > %(behind)s
   and at >= %(since)s
   and (%(has)s::text is null or strpos(record, %(has)s) > 0)
 order by seq
 limit %(limit)s
