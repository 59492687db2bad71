-- fold: make few rows of many in `moves`, if there are many. Those that another transaction is folding are left to it, and
-- whoever reads sees all of a fold or nothing: the sums never change. (SQLite adds to one row, since it has one writer.)
with many as (
    select ctid
      from queuectl.moves
     where (select count(*) from (select 1 from queuectl.moves limit %(many)s) as few) >= %(many)s
     limit %(limit)s
       for update skip locked
),
gone as (
    delete from queuectl.moves
     where ctid = any(array(select ctid from many))
    returning queue, was, now, ending, jobs
)
insert into queuectl.moves (queue, was, now, ending, jobs)
select queue, was, now, ending, sum(jobs)::bigint
  from gone
 group by queue, was, now, ending
