-- set_aside: others of its key have all places; out of the line with it, so that the next claim need not step over it.
update jobs
   set aside = 1
 where seq = :seq
   and ready = 1
