-- place: where a job stands in the line, and whether somebody called its run off.
select queue, rank, seq, cancel_requested
  from queuectl.jobs
 where id = %(id)s
