-- last_seq: the sequence number given out last; survives the removal of every job. It may belong to a batch that is not
-- committed yet.
select case when is_called then last_value else 0 end
  from queuectl.jobs_seq_seq
