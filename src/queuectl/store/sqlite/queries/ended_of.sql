-- ended_of: ended.sql for jobs that somebody has named or chosen, in any final state; found by their ids.
select id, log, host,
       max(1, runs)
       + (select count(*) from output where output.job = jobs.seq)
       + (select count(*) from job_tags where job_tags.job = jobs.seq)
       + (length(coalesce(command, argv)) + length(coalesce(env, ''))) / 2048
  from jobs
 where id in (select value from json_each(:ids))
   and +state = :state
   and finished_at <= :before
   and (:host is null or host is null or host = :host
        or not exists (select 1 from workers where workers.host = jobs.host))
 order by +finished_at
