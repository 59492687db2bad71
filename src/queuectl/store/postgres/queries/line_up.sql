-- line_up: in a whole queue, set aside whoever has no room by its key, and let back whoever has. Once, when its limit changes or
-- the order of the line; per_key is null if it has none. Nobody claims meanwhile, see change_ageing.sql.
update queuectl.jobs
   set aside = line.aside,
       ready_since = pg_current_xact_id()
  from (
    select seq,
           coalesce(places, %(per_key)s::integer) is not null
           and row_number() over (partition by key order by rank, seq) > coalesce(places, %(per_key)s::integer) - (
               select count(*)
                 from queuectl.jobs as other
                where other.queue = jobs.queue
                  and other.key = jobs.key
                  and other.state = 'processing'
           ) as aside
      from queuectl.jobs
     where queue = %(queue)s
       and key is not null
       and ready
  ) as line
 where jobs.seq = line.seq
   and jobs.aside <> line.aside
