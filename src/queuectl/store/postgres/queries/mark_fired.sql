-- mark_fired: a job that was just added is of this schedule, and may have to wait for those before it.
update queuectl.jobs
   set cron = %(name)s,
       held = %(held)s,
       ready = ready and not %(held)s
 where id = %(id)s
