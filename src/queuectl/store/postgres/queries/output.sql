-- output: what is kept of what a run printed, from a byte on; the first piece may begin before it.
with job as (
    select seq
      from queuectl.jobs
     where id = %(id)s
)
select at, data
  from queuectl.output
 where job = (select seq from job)
   and run = %(run)s
   and at >= coalesce(
       (select max(at) from queuectl.output where job = (select seq from job) and run = %(run)s and at <= %(start)s), 0
   )
   and at + length(data) > %(start)s
 order by at
 limit %(limit)s
