-- holders: who has each of some unique keys: the one that waits or runs (there is one at most), else the one enqueued last.
select given.value, jobs.id, jobs.state, jobs.created_at
  from json_each(:keys) as given
  join jobs
    on jobs.seq = coalesce(
           (
               select seq
                 from jobs indexed by jobs_unique
                where unique_key = given.value
                  and state <> 'completed'
                  and state <> 'dead'
                  and state <> 'cancelled'
           ),
           (
               select seq
                 from jobs indexed by jobs_key
                where unique_key = given.value
                order by created_at desc, seq desc
                limit 1
           )
       )
