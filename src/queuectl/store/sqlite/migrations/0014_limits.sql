-- What a run of a job may use: fixed at enqueue, as plain data, see job/resources.py. Null: whatever there is.
alter table jobs add column limits text;

-- The same for the jobs of a queue that do not say otherwise.
alter table queues add column limits text;

-- What the process of a run has used, as a list of numbers, see store/facts.py. Null: nobody knows.
alter table jobs add column usage text;
alter table runs add column usage text;
