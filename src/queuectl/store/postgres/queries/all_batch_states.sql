-- all_batch_states: how many jobs of each batch there are in each state, straight from an index.
select batch, state, count(*)
  from queuectl.jobs
 where batch is not null
 group by batch, state
