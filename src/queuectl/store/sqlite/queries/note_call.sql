-- note_call: somebody is to be told of an end, in the transaction that writes it. (PostgreSQL does so within settle.sql.)
insert into calls (job, run, happening, url, said, at)
values (:job, :run, :happening, :url, :said, :at)
