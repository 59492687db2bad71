-- tag: let a job be found by one of its tags.
insert into job_tags (tag, job)
values (?, ?)
