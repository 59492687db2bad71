-- is_awaited: does somebody wait for one of these jobs, which are locked?
-- (SQLite has one writer: nobody comes to wait in the middle.)
select exists (select 1 from queuectl.edges where parent = any(%(seqs)s) and state = 'waiting')
