-- copied: how much there is of each thing that a copy takes along. Of the runs, those that stand in their job count too.
select 'jobs', (select count(*) from jobs)
union all
select 'runs',
       (select count(*) from runs) + (select count(*) from jobs where ending is not null or state = 'processing')
union all
select 'pieces of output', (select count(*) from output)
union all
select 'tags', (select count(*) from job_tags)
union all
select 'batches', (select count(*) from batches)
union all
select 'dependencies', (select count(*) from edges)
union all
select 'settings', (select count(*) from config)
union all
select 'schedules', (select count(*) from schedules)
union all
select 'alerts', (select count(*) from alerts)
union all
select 'rules of queues', (select count(*) from queues)
union all
select 'jobs ever enqueued', (select coalesce(sum(jobs), 0) from moves where was = '')
union all
select 'keyed requests', (select count(*) from requests)
union all
select 'calls to make', (select count(*) from calls)
union all
select 'points for charts', (select count(*) from points)
