-- has_calls: is anybody to be told of something?
select exists (select 1 from calls)
