-- thin_points: remove what is older than it is kept.
delete from points
 where span = :span
   and at < :before
