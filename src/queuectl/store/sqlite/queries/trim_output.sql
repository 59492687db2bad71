-- trim_output: remove the oldest output of a job that has ended by a moment.
delete from output
 where rowid in (
    select output.rowid
      from output
     where job = (
        select seq
          from jobs
         where id = :id
           and state in ('completed', 'dead', 'cancelled')
           and finished_at <= :before
     )
     order by run, at
     limit :rows
 )
