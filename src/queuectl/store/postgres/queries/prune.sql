-- prune: remove jobs that have ended by a moment, their history, output, tags and edges, and count them out. One that somebody
-- waits for stays until all that wait have been told. Locked in one order, so that two who remove the same do not wait for each
-- other. Also for dead jobs that a person removes. (SQLite removes one at a time: nobody else can write; and has purge.sql.)
with chosen as (
    select seq
      from queuectl.jobs
     where id = any(%(ids)s)
       and state in ('completed', 'dead', 'cancelled')
       and finished_at <= %(before)s
       and not exists (select 1 from queuectl.edges where parent = jobs.seq and state = 'waiting')
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
of_parents as (
    delete from queuectl.edges
     using gone
     where parent = gone.seq
),
of_children as (
    delete from queuectl.edges
     using gone
     where child = gone.seq
),
counted as (
    insert into queuectl.moves (queue, was, now, ending, jobs)
    select queue, state, '', '', count(*)
      from gone
     group by queue, state
)
select id, log
  from gone
