-- identity: which store this is, in which database: one that was cloned has the same id, and is another store.
-- (SQLite: the file itself, wherever its paths lead.)
select meta.id || '/' || pg_database.oid::text
  from queuectl.meta, pg_database
 where datname = current_database()
