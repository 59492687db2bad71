-- strays: how many rows of which table belong to a job that is not there.
select "table", count(*)
  from pragma_foreign_key_check()
 group by "table"
