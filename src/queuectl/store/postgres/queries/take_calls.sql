-- take_calls: who is to be told, for as many jobs as are made at a time. What another is just taking is left to it. (SQLite has one
-- writer.)
delete from queuectl.calls
 where ctid = any(array(select ctid from queuectl.calls limit %(limit)s for update skip locked))
returning at, job, run, happening, url, said
