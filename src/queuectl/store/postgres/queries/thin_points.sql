-- thin_points: remove what is older than it is kept.
delete from queuectl.points
 where span = %(span)s
   and at < %(before)s
