-- reset_jobs: remove every job; history and tags go with them.
delete from jobs
