-- last_seq: the sequence number given out last; survives the removal of every job.
select coalesce((select seq from sqlite_sequence where name = 'jobs'), 0)
