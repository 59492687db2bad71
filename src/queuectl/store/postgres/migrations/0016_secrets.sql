-- Which secrets a job asks for, by name, see job/secrets.py. Null: none. What they are is never here.
alter table queuectl.jobs add column secrets text;
