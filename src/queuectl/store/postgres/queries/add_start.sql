-- add_start: a job of a queue with a rate was claimed.
insert into queuectl.starts (queue, number, job, run, at)
values (%(queue)s, %(number)s, %(job)s, %(run)s, %(now)s)
