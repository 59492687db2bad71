-- block: new jobs that wait for others, or could have.
update queuectl.jobs
   set state = case when told.is_blocked then 'blocked' else state end,
       ready = ready and not told.is_blocked,
       depends_on = told.depends_on
  from unnest(%(seqs)s::bigint[], %(blocked)s::boolean[], %(said)s::text[]) as told (seq, is_blocked, depends_on)
 where jobs.seq = told.seq
