-- tag: let jobs be found by their tags, as a stream of rows.
copy queuectl.job_tags (tag, job) from stdin
