-- batch_lately: how many jobs of a batch were completed since a moment.
select count(*)
  from queuectl.jobs
 where state = 'completed'
   and finished_at > %(since)s
   and batch = %(name)s
