-- is_undecided: are there jobs that have not been told what became of their parents? (SQLite: a column of outlook.sql.)
select exists (select 1 from queuectl.undecided)
