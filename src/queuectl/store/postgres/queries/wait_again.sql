-- wait_again: jobs that are blocked again wait for all of their parents that they did not have to wait for meanwhile; these are
-- looked at next.
with again as (
    update queuectl.edges
       set state = 'waiting'
     where child = any(%(children)s)
       and state = 'void'
    returning parent
)
insert into queuectl.undecided (parent)
select distinct parent
  from again
