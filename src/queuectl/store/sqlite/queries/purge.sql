-- purge: remove a dead job; its history, output, tags and edges go with it. (PostgreSQL: prune.sql.)
delete from jobs
 where seq = ?
   and state = 'dead'
