-- is_waiting: does a job wait for some parent?
select exists (select 1 from edges where child = ? and state = 'waiting')
