-- new_parents: the jobs that new ones are to wait for. Until the end of this transaction nobody removes them; that they end is
-- not held up, see the table `undecided`.
select id, seq, state
  from queuectl.jobs
 where id = any(%(ids)s::text[])
 order by id
   for key share
