-- reset_jobs: remove every job with history, output, tags and edges, and all batches, and count them out. (SQLite counts by its tally:
-- nobody else can write meanwhile.)
with gone as (
    delete from queuectl.jobs
    returning seq, queue, state
),
history as (
    delete from queuectl.runs
),
printed as (
    delete from queuectl.output
),
tags as (
    delete from queuectl.job_tags
),
names as (
    delete from queuectl.batches
),
edges as (
    delete from queuectl.edges
),
calls as (
    delete from queuectl.calls
),
undecided as (
    delete from queuectl.undecided
),
counted as (
    insert into queuectl.moves (queue, was, now, ending, jobs)
    select queue, state, '', '', count(*)
      from gone
     group by queue, state
)
select count(*)
  from gone
