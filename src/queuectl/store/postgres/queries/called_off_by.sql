-- called_off_by: of some jobs those that another one of them has called off.
select distinct child
  from queuectl.edges
 where child = any(%(seqs)s)
   and parent = any(%(seqs)s)
   and state = 'broke'
