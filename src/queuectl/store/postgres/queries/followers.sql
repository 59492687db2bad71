-- followers: jobs that meet the same fate as some that have changed, one behind the other: what waits for a cancelled job and needs
-- it is cancelled, and what a job cancelled that is blocked again is blocked again. Nearest first, with those themselves. By the index
-- (`limit`: or the planner may read all edges). (SQLite tells one parent after the other in one transaction.)
with recursive follower (seq, fate) as (
    select told.seq, told.fate
      from unnest(%(seqs)s::bigint[], %(fates)s::text[]) as told (seq, fate)
    union
    select behind.child, follower.fate
      from follower
     cross join lateral (
        select child
          from queuectl.edges
         where edges.parent = follower.seq
           and edges.state = case follower.fate when 'cancelled' then 'waiting' else 'broke' end
           and edges.need <> 'ended'
           and (edges.otherwise = 'cancel' or follower.fate = 'blocked')
         limit %(limit)s
     ) as behind
)
select seq
  from follower
 limit %(limit)s
