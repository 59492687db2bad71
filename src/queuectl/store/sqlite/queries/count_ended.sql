-- count_ended: how many jobs ended in a state by a moment. Of the two indexes only one has any of them.
select (
    select count(*)
      from jobs indexed by jobs_completed
     where :state = 'completed'
       and state = 'completed'
       and finished_at <= :before
) + (
    select count(*)
      from jobs indexed by jobs_ended
     where state = :state
       and (state = 'dead' or state = 'cancelled')
       and finished_at <= :before
)
