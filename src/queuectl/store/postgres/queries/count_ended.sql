-- count_ended: how many jobs ended in a state by a moment. Of the two indexes only one has any of them.
select (
    select count(*)
      from queuectl.jobs
     where %(state)s::text = 'completed'
       and state = 'completed'
       and finished_at <= %(before)s
) + (
    select count(*)
      from queuectl.jobs
     where state = %(state)s
       and state in ('dead', 'cancelled')
       and finished_at <= %(before)s
)
