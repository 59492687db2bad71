-- ended_of: ended.sql for jobs that somebody has named or chosen, in any final state; found by their ids. By themselves first: the
-- planner would rather go through all that have ended.
with named as materialized (
    select jobs.seq, jobs.id, jobs.state, jobs.finished_at, jobs.log, jobs.host, jobs.runs, jobs.command, jobs.argv, jobs.env
      from unnest(%(ids)s::text[]) as told (id)
      join queuectl.jobs
        on jobs.id = told.id
)
select id, log, host,
       greatest(1, runs)
       + (select count(*) from queuectl.output where output.job = named.seq)
       + (select count(*) from queuectl.job_tags where job_tags.job = named.seq)
       + (octet_length(coalesce(command, argv)) + octet_length(coalesce(env, ''))) / 2048
  from named
 where state = %(state)s
   and finished_at <= %(before)s
   and (%(host)s::text is null or host is null or host = %(host)s
        or not exists (select 1 from queuectl.workers where workers.host = named.host))
 order by finished_at
