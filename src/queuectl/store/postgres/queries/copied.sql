-- copied: how much there is of each thing that a copy takes along. Of the runs, those that stand in their job count too.
select 'jobs', (select count(*) from queuectl.jobs)
union all
select 'runs',
       (select count(*) from queuectl.runs)
       + (select count(*) from queuectl.jobs where ending is not null or state = 'processing')
union all
select 'pieces of output', (select count(*) from queuectl.output)
union all
select 'tags', (select count(*) from queuectl.job_tags)
union all
select 'batches', (select count(*) from queuectl.batches)
union all
select 'dependencies', (select count(*) from queuectl.edges)
union all
select 'settings', (select count(*) from queuectl.config)
union all
select 'schedules', (select count(*) from queuectl.schedules)
union all
select 'alerts', (select count(*) from queuectl.alerts)
union all
select 'rules of queues', (select count(*) from queuectl.queues)
union all
select 'jobs ever enqueued', (select coalesce(sum(jobs), 0)::bigint from queuectl.moves where was = '')
union all
select 'keyed requests', (select count(*) from queuectl.requests)
union all
select 'calls to make', (select count(*) from queuectl.calls)
union all
select 'points for charts', (select count(*) from queuectl.points)
