"""One module a noun: the commands, each imported only when it is called."""
