-- moves: every passage between two states ever made, and how the run ended that ended with it.
select queue, was, now, ending, sum(jobs)::bigint
  from queuectl.moves
 group by queue, was, now, ending
