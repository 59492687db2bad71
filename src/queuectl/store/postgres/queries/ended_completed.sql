-- ended_completed: ended.sql for completed jobs, which have an index of their own.
select id, log, host,
       greatest(1, runs)
       + (select count(*) from queuectl.output where output.job = jobs.seq)
       + (select count(*) from queuectl.job_tags where job_tags.job = jobs.seq)
       + (octet_length(coalesce(command, argv)) + octet_length(coalesce(env, ''))) / 2048
  from queuectl.jobs
 where state = 'completed'
   and finished_at <= %(before)s
   and (%(host)s::text is null or host is null or host = %(host)s
        or host <> all (array(select workers.host from queuectl.workers)))
 order by finished_at
 limit %(limit)s
