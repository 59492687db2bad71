-- decidable: edges that are not what they should be, by the state of their parents: those that wait for one that has ended, and
-- those that broke by one that would not break them now. Each kind by the index.
select parent.seq, edge.child
  from queuectl.jobs as parent
 cross join lateral (
    (
        select child
          from queuectl.edges
         where edges.parent = parent.seq
           and edges.state = 'waiting'
           and parent.state in ('completed', 'dead', 'cancelled')
         limit %(limit)s
    )
    union all
    (
        select mended.child
          from (values ('completed', 'completed'), ('failed', 'dead')) as kind (need, meets)
         cross join lateral (
            select child
              from queuectl.edges
             where edges.parent = parent.seq
               and edges.state = 'broke'
               and edges.need = kind.need
               and (parent.state = kind.meets or parent.state not in ('completed', 'dead', 'cancelled'))
             limit %(limit)s
         ) as mended
    )
 ) as edge
 where parent.seq = any(%(parents)s)
 limit %(limit)s
