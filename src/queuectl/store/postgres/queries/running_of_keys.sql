-- running_of_keys: how many jobs of a queue run with each of these keys. (SQLite asks running_of_key.sql of each.)
select told.key,
       (
           select count(*)
             from queuectl.jobs
            where jobs.queue = %(queue)s
              and jobs.key = told.key
              and jobs.state = 'processing'
       )
  from unnest(%(keys)s::text[]) as told (key)
