-- leave_undecided: look at the children of these parents: one may have ended before it could see that somebody waits for it.
copy queuectl.undecided (parent) from stdin
