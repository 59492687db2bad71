-- is_cancelled: was a cancel recorded for this run? No row: the job has passed to somebody else.
-- (PostgreSQL compares it within settle.sql.)
select cancel_requested
  from jobs
 where seq = :seq
   and token = :token
   and state = 'processing'
