-- batch_states: how many jobs of a batch there are in each state, straight from an index.
select state, count(*)
  from queuectl.jobs
 where batch = %(name)s
 group by state
