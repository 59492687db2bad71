-- reset_jobs: remove every job; history, output and tags go with them.
delete from jobs
