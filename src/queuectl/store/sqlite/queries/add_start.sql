-- add_start: a job of a queue with a rate was claimed.
insert into starts (queue, number, job, run, at)
values (:queue, :number, :job, :run, :now)
