-- sampling: when somebody last looked, and up to which end of a job its times are in `buckets`.
select at, until, removals
  from sampling
