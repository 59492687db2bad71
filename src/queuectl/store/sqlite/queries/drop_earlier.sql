-- drop_earlier: after unclaim.sql the latest run stands in the job again, and not in `runs`. (PostgreSQL does both in unclaim.sql.)
delete from runs
 where job = :seq
   and number = (select runs from jobs where seq = :seq)
