-- audit: the records behind a place in the chain, the oldest first. `has`: only those with this text somewhere in them.
select seq, at, record, hash
  from audit
 where seq > :behind
   and at >= :since
   and (:has is null or instr(record, :has))
 order by seq
 limit :limit
