-- endings: every run ever ended, by its end.
select queue, ending, runs
  from endings
