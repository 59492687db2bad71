-- config: all stored settings.
select key, value
  from config
