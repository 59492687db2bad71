-- line_up: in a whole queue, set aside whoever has no room by its key, and let back whoever has. Once, when its limit changes or
-- the order of the line; :per_key is null if it has none.
update jobs
   set aside = line.aside
  from (
    select seq,
           coalesce(places, :per_key) is not null
           and row_number() over (partition by key order by rank, seq) > coalesce(places, :per_key) - (
               select count(*)
                 from jobs as other indexed by jobs_running_key
                where other.queue = :queue
                  and other.key = jobs.key
                  and other.state = 'processing'
           ) as aside
      from jobs indexed by jobs_of_key
     where queue = :queue
       and key is not null
       and ready = 1
  ) as line
 where jobs.seq = line.seq
   and jobs.aside <> line.aside
