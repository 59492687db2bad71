-- continue_from: the next job that is enqueued gets the number after this one. Not undone by a rollback: so it comes last.
-- (SQLite: sqlite_sequence.)
select setval('queuectl.jobs_seq_seq', %(last_seq)s, true)
