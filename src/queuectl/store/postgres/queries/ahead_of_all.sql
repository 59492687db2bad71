-- ahead_of_all: the same over all queues in one order, along jobs_line. (SQLite asks ahead.sql of one queue after the other.)
select count(*)
  from (
    select 1
      from queuectl.jobs
     where ready
       and not aside
       and (rank, seq) < (%(rank)s, %(seq)s)
     order by rank, seq
     limit %(limit)s
  ) as before
