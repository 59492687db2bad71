-- set_config: store one setting.
insert into config (key, value)
values (:key, :value)
on conflict (key) do update set value = :value
