-- holders: who has each of some unique keys: the one that waits or runs (there is one at most), else the one enqueued last.
-- The caller holds the locks of these keys, see take_keys.sql.
select given.key, found.id, found.state, found.created_at
  from unnest(%(keys)s::text[]) as given (key)
 cross join lateral (
    (
        select id, state, created_at, 1 as turn
          from queuectl.jobs
         where unique_key = given.key
           and state <> 'completed'
           and state <> 'dead'
           and state <> 'cancelled'
    )
    union all
    (
        select id, state, created_at, 2 as turn
          from queuectl.jobs
         where unique_key = given.key
         order by created_at desc, seq desc
         limit 1
    )
    order by turn
    limit 1
 ) as found
