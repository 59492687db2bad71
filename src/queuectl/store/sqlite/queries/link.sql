-- link: let a job wait for another. Positional: parent, child, need, otherwise, state.
insert into edges (parent, child, need, otherwise, state)
values (?, ?, ?, ?, ?)
