-- audit_until: the last of the oldest records, `rows` at most, that were written before a time. Holds the end of the chain.
select audit.seq, audit.hash
  from queuectl.audit_ends
  join queuectl.audit on audit.seq <= audit_ends.base + %(rows)s
 where audit.at < %(before)s
 order by audit.seq desc
 limit 1
   for update of audit_ends
