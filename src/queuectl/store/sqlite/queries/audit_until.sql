-- audit_until: the last of the oldest records, `rows` at most, that were written before a time.
select seq, hash
  from audit
 where seq <= (select base from audit_ends) + :rows
   and at < :before
 order by seq desc
 limit 1
