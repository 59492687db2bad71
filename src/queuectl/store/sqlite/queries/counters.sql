-- counters: what ever happened in each queue, as it was when somebody last looked.
select queue, enqueued, started, completed, failed, dead, retried, rescued
  from counters
