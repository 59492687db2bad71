-- bells: where to ring so that waiting workers wake. (PostgreSQL: ring.sql, which reaches all who listen.)
select home, id
  from workers
