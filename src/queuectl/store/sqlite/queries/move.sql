-- move: a job that waits goes to another queue and keeps its rank.
update jobs
   set queue = :queue,
       aside = 0,
       updated_at = max(:now, created_at)
 where seq = :seq
