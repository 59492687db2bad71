-- measure: the clock of the server.
select (extract(epoch from clock_timestamp()) * 1000)::bigint
