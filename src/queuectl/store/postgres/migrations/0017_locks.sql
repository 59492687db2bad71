-- Rows that transactions lock to exclude each other. Not advisory locks: every role that may connect to the database can take
-- those, and would stop the queue. No row is ever changed. Workers, unique keys and queues have 1,024 rows each, and share
-- one if their hashes are equal. The table itself is the lock for the ageing rule: see queries/hold_ageing.sql.
create table queuectl.locks (
    id integer primary key  -- 0 to 1023: workers; 1024 to 2047: unique keys; 2048 to 3071: queues
);

insert into queuectl.locks (id)
select generate_series(0, 3071);
