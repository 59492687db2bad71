-- measure: the clock of the server. (SQLite: this machine's.)
select (extract(epoch from clock_timestamp()) * 1000)::bigint
