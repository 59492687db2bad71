-- batch_states: how many jobs of a batch there are in each state, straight from an index.
select state, count(*)
  from jobs indexed by jobs_batch
 where batch = :name
 group by state
