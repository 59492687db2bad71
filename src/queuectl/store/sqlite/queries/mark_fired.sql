-- mark_fired: a job that was just added is of this schedule, and may have to wait for those before it.
update jobs
   set cron = :name,
       held = :held,
       ready = ready and not :held
 where id = :id
