-- drop_output: remove what ends at or before a byte of the output of a run. Changes nothing if the job has passed to somebody
-- else.
delete from output
 where job = :seq
   and run = (select runs from jobs where seq = :seq and token = :token and state = 'processing')
   and at < :keep_from
   and at + length(data) <= :keep_from
