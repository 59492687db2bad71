-- was_settled: is this run in the books as ended by whoever held this token? Asked only by a worker that sent an end and lost
-- the connection before the answer. (SQLite has no connection that could be lost.)
select ending
  from queuectl.jobs
 where seq = %(seq)s
   and last_token = %(token)s
   and (ending is not null or state = 'dead')  -- dead without one: refused, see unrun.sql
union all
select ending
  from queuectl.runs
 where job = %(seq)s
   and token = %(token)s
