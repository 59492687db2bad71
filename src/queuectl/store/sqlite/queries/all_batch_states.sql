-- all_batch_states: how many jobs of each batch there are in each state, straight from an index.
select batch, state, count(*)
  from jobs indexed by jobs_batch
 where batch is not null
 group by batch, state
