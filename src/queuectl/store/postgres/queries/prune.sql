-- prune: remove jobs that have ended by a moment, their history, their output and their tags, and count them out. Locked in one
-- order, so that two who remove the same do not wait for each other. (SQLite removes one at a time: nobody else can write.)
with chosen as (
    select seq
      from queuectl.jobs
     where id = any(%(ids)s)
       and state in ('completed', 'dead', 'cancelled')
       and finished_at <= %(before)s
     order by id
       for update
),
gone as (
    delete from queuectl.jobs
     where seq = any(array(select seq from chosen))
    returning seq, id, queue, state, log
),
history as (
    delete from queuectl.runs
     using gone
     where job = gone.seq
),
printed as (
    delete from queuectl.output
     using gone
     where job = gone.seq
),
tags as (
    delete from queuectl.job_tags
     using gone
     where job = gone.seq
),
counted as (
    insert into queuectl.moves (queue, was, now, ending, jobs)
    select queue, state, '', '', count(*)
      from gone
     group by queue, state
)
select id, log
  from gone
