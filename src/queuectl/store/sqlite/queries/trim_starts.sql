-- trim_starts: of a queue with a rate, forget the starts that no later one has to keep its distance from.
delete from starts
 where queue = :queue
   and number <= :number
