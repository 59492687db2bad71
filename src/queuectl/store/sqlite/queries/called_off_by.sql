-- called_off_by: of some jobs those that another one of them has called off.
select distinct child
  from edges
 where child in (select value from json_each(:seqs))
   and parent in (select value from json_each(:seqs))
   and state = 'broke'
