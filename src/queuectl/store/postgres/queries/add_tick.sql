-- add_tick: what was decided about a tick. Nothing is added, and its job must not be, if somebody has decided about it before.
insert into queuectl.ticks (schedule, at, by_hand, decided_at, job, reason, times)
values (%(schedule)s, %(at)s, %(by_hand)s, %(now)s, %(job)s, %(reason)s, %(times)s)
on conflict do nothing
