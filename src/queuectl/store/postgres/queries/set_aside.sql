-- set_aside: others of their keys have all places; out of the line with them, so that the next claim need not step over them.
-- Whoever is being changed by somebody else is left: it is looked at again.
with found as (
    select seq
      from queuectl.jobs
     where seq = any(%(seqs)s)
       and ready
       for update skip locked
)
update queuectl.jobs
   set aside = true
  from found
 where jobs.seq = found.seq
