-- add_tick: what was decided about a tick. Nothing is added, and its job must not be, if somebody has decided about it before.
insert into ticks (schedule, at, by_hand, decided_at, job, reason, times)
values (:schedule, :at, :by_hand, :now, :job, :reason, :times)
on conflict do nothing
