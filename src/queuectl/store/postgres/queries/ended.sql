-- ended: dead or cancelled jobs that ended by a moment, the first to end first, with how many rows and half pages go with each. The
-- state is a range that means one value: only jobs_ended gives that order.
-- With a host: not those whose log is on a host that some other worker is of.
select id, log, host,
       greatest(1, runs)
       + (select count(*) from queuectl.output where output.job = jobs.seq)
       + (select count(*) from queuectl.job_tags where job_tags.job = jobs.seq)
       + (octet_length(coalesce(command, argv)) + octet_length(coalesce(env, ''))) / 2048
  from queuectl.jobs
 where state in ('dead', 'cancelled')
   and finished_at is not null
   and (state, finished_at) > (%(state)s, -1)
   and (state, finished_at) <= (%(state)s, %(before)s)
   and (%(host)s::text is null or host is null or host = %(host)s
        or host <> all (array(select workers.host from queuectl.workers)))
 order by state, finished_at
 limit %(limit)s
