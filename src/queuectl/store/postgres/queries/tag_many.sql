-- tag_many: let jobs be found by their tags, as a stream of rows. (SQLite: tag.sql.)
copy queuectl.job_tags (tag, job) from stdin
