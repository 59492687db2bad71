-- earlier_starts: of a queue with a rate, the starts of these numbers, and when they were. As in limits.sql.
select number,
       coalesce(
           (
               select max(started_at)
                 from (
                   select started_at from jobs where seq = earlier.job and runs = earlier.run
                   union all
                   select started_at from runs where job = earlier.job and runs.number = earlier.run
                 )
                where started_at between earlier.at and :now
           ),
           at
       ),
       not exists (
           select 1
             from jobs
            where seq = earlier.job
              and runs = earlier.run
              and state = 'processing'
              and pid is null
       )
  from starts as earlier
 where queue = :queue
   and number between :first and :last
