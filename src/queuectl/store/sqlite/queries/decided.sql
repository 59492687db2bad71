-- decided: all children of this parent have been told.
delete from undecided
 where parent = ?
