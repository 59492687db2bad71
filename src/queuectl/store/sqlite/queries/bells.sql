-- bells: where to ring so that waiting workers wake.
select home, id
  from workers
