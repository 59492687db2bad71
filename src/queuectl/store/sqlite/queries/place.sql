-- place: where a job stands in the line, and whether somebody called its run off.
select queue, rank, seq, cancel_requested
  from jobs
 where id = :id
