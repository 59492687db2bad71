-- batch_lately: how many jobs of a batch were completed since a moment.
select count(*)
  from jobs indexed by jobs_completed
 where state = 'completed'
   and finished_at > :since
   and batch = :name
