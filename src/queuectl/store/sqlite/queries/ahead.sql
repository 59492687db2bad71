-- ahead: how many jobs of a queue would be claimed before this place, counted up to a limit.
select count(*)
  from (
    select 1
      from jobs indexed by jobs_ready
     where queue = :queue
       and ready = 1
       and aside = 0
       and (rank, seq) < (:rank, :seq)
     limit :limit
  )
