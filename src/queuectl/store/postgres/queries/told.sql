-- told: the triggers have noted jobs in this transaction whose children have been told already. Those with an edge that is not what
-- it should be (see decidable.sql) stay; so does what other transactions have noted. The edges are looked up for each row, by the
-- index, whatever the planner takes for the number of rows. (SQLite has one row a parent.)
delete from queuectl.undecided
 where xmin = pg_current_xact_id()::xid
   and (
       select count(*)
         from (
           select 1
             from queuectl.jobs
             join queuectl.edges
               on edges.parent = jobs.seq
            where jobs.seq = undecided.parent
              and (
                  (edges.state = 'waiting' and jobs.state in ('completed', 'dead', 'cancelled'))
                  or (edges.state = 'broke' and jobs.state <> 'cancelled')
              )
            limit 1
         ) as open
   ) = 0
