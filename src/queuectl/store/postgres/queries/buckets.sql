-- buckets: run and waiting times of all jobs ever completed, up to `sampling.until`.
select queue, what, bucket, jobs, ms
  from queuectl.buckets
