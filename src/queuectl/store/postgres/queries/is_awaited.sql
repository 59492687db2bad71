-- is_awaited: does somebody wait for one of these jobs, which are locked?
select exists (select 1 from queuectl.edges where parent = any(%(seqs)s) and state = 'waiting')
