-- output: what is kept of what a run printed, from a byte on; the first piece may begin before it.
select at, data
  from output
 where job = (select seq from jobs where id = :id)
   and run = :run
   and at >= coalesce(
       (select max(at) from output where job = (select seq from jobs where id = :id) and run = :run and at <= :start), 0
   )
   and at + length(data) > :start
 order by at
 limit :limit
