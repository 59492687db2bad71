-- leave_undecided: look at the children of this parent.
insert or ignore into undecided (parent)
values (?)
