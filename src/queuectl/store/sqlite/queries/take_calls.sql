-- take_calls: who is to be told, the oldest first, for as many jobs as are made at a time. (In PostgreSQL what another is just
-- taking is left to it.)
delete from calls
 where rowid in (select rowid from calls order by rowid limit :limit)
returning at, job, run, happening, url, said
