-- ended: dead or cancelled jobs that ended by a moment, the first to end first, with how many rows and half pages go with each.
-- With a host: not those whose log is on a host that some other worker is of.
select id, log, host,
       max(1, runs)
       + (select count(*) from output where output.job = jobs.seq)
       + (select count(*) from job_tags where job_tags.job = jobs.seq)
       + (length(coalesce(command, argv)) + length(coalesce(env, ''))) / 2048
  from jobs indexed by jobs_ended
 where state = :state
   and (state = 'dead' or state = 'cancelled')
   and finished_at <= :before
   and (:host is null or host is null or host = :host
        or not exists (select 1 from workers where workers.host = jobs.host))
 order by finished_at
 limit :limit
