-- is_waiting: does a job wait for some parent? (PostgreSQL: open_edges.sql, for many children at once.)
select exists (select 1 from edges where child = ? and state = 'waiting')
