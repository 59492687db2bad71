-- link: let jobs wait for others, as a stream of rows.
copy queuectl.edges (parent, child, need, otherwise, state) from stdin
