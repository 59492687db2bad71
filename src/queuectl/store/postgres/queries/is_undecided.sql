-- is_undecided: are there jobs that have not been told what became of their parents?
select exists (select 1 from queuectl.undecided)
