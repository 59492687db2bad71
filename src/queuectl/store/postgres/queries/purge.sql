-- purge: remove dead jobs, their history, their output, their tags and their edges.
with gone as (
    delete from queuectl.jobs
     where seq = any(%(seqs)s)
       and state = 'dead'
    returning seq
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
of_parents as (
    delete from queuectl.edges
     using gone
     where parent = gone.seq
),
of_children as (
    delete from queuectl.edges
     using gone
     where child = gone.seq
)
delete from queuectl.job_tags
 using gone
 where job = gone.seq
