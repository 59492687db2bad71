-- tag: let a job be found by one of its tags.
insert into queuectl.job_tags (tag, job)
values (%s, %s)
