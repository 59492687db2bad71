-- strays: how many rows of which table belong to a job that is not there. No foreign keys see to it here, see the schema.
select 'runs', count(*)
  from queuectl.runs
 where not exists (select 1 from queuectl.jobs where seq = runs.job)
union all
select 'output', count(*)
  from queuectl.output
 where not exists (select 1 from queuectl.jobs where seq = output.job)
union all
select 'job_tags', count(*)
  from queuectl.job_tags
 where not exists (select 1 from queuectl.jobs where seq = job_tags.job)
union all
select 'edges', count(*)
  from queuectl.edges
 where not exists (select 1 from queuectl.jobs where seq = edges.parent)
    or not exists (select 1 from queuectl.jobs where seq = edges.child)
