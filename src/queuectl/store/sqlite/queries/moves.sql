-- moves: every passage between two states ever made.
select queue, was, now, jobs
  from moves
