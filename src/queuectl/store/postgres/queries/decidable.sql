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
        select child
          from queuectl.edges
         where edges.parent = parent.seq
           and edges.state = 'broke'
           and edges.need = 'completed'
           and parent.state not in ('dead', 'cancelled')
         limit %(limit)s
    )
    union all
    (
        select child
          from queuectl.edges
         where edges.parent = parent.seq
           and edges.state = 'broke'
           and edges.need = 'failed'
           and parent.state not in ('completed', 'cancelled')
         limit %(limit)s
    )
 ) as edge
 where parent.seq = any(%(parents)s)
 limit %(limit)s
