-- new_parents: the jobs that new ones are to wait for.
select id, seq, state
  from jobs
 where id in (select value from json_each(:ids))
