SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA queuectl;
CREATE FUNCTION queuectl.keep_audit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if old.seq > coalesce((select base from queuectl.audit_ends), 0) then
        raise exception 'what is in the audit is neither changed nor removed';
    end if;
    return old;
end
$$;
CREATE FUNCTION queuectl.let_go() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    update queuectl.edges
       set state = 'void'
     where child = new.seq
       and state = case old.state when 'blocked' then 'waiting' else 'broke' end;
    return null;
end
$$;
CREATE FUNCTION queuectl.note_fate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if exists (select 1 from queuectl.edges where parent = new.seq and state in ('waiting', 'broke')) then
        insert into queuectl.undecided (parent) values (new.seq);
    end if;
    return null;
end
$$;
CREATE FUNCTION queuectl.refuse_audit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise exception 'what is in the audit is neither changed nor removed';
end
$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE queuectl.alerts (
    name text NOT NULL,
    kind text NOT NULL,
    threshold bigint NOT NULL,
    within_ms bigint,
    queue text,
    for_ms bigint NOT NULL,
    repeat_ms bigint,
    url text,
    command text,
    cwd text NOT NULL,
    created_at bigint NOT NULL,
    firing boolean NOT NULL,
    changed_at bigint,
    since_at bigint,
    told_at bigint,
    seen_at bigint,
    checked_at bigint,
    value bigint,
    untold text NOT NULL,
    tried_at bigint,
    turn bigint NOT NULL,
    CONSTRAINT alerts_check CHECK (((url IS NULL) <> (command IS NULL))),
    CONSTRAINT alerts_kind_check CHECK ((kind = ANY (ARRAY['dead'::text, 'oldest'::text, 'no-worker'::text]))),
    CONSTRAINT alerts_name_check CHECK (((length(name) >= 1) AND (length(name) <= 64)))
);
CREATE TABLE queuectl.audit (
    seq bigint NOT NULL,
    at bigint NOT NULL,
    record text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE queuectl.audit_ends (
    one integer NOT NULL,
    base bigint NOT NULL,
    base_hash text NOT NULL,
    head bigint NOT NULL,
    head_hash text NOT NULL,
    CONSTRAINT audit_ends_check CHECK ((head >= base)),
    CONSTRAINT audit_ends_one_check CHECK ((one = 1))
)
WITH (fillfactor='10', autovacuum_vacuum_threshold='100', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.batches (
    name text NOT NULL COLLATE pg_catalog."C",
    added bigint NOT NULL,
    created_at bigint NOT NULL,
    completed_at bigint,
    on_complete text,
    on_complete_job text,
    CONSTRAINT batches_check CHECK (((completed_at IS NULL) = (on_complete_job IS NULL))),
    CONSTRAINT batches_name_check CHECK (((length(name) >= 1) AND (length(name) <= 64)))
)
WITH (fillfactor='50');
CREATE TABLE queuectl.buckets (
    queue text NOT NULL COLLATE pg_catalog."C",
    what text NOT NULL COLLATE pg_catalog."C",
    bucket integer NOT NULL,
    jobs bigint NOT NULL,
    ms bigint NOT NULL,
    CONSTRAINT buckets_bucket_check CHECK ((bucket >= 0)),
    CONSTRAINT buckets_what_check CHECK ((what = ANY (ARRAY['run'::text, 'wait'::text])))
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='500', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.calls (
    job text NOT NULL,
    run integer NOT NULL,
    happening text NOT NULL,
    url text NOT NULL,
    said text NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE queuectl.config (
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL
);
CREATE TABLE queuectl.counters (
    queue text NOT NULL COLLATE pg_catalog."C",
    enqueued bigint NOT NULL,
    started bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    retried bigint NOT NULL,
    rescued bigint NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='500', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.done (
    worker text NOT NULL COLLATE pg_catalog."C",
    jobs bigint NOT NULL
)
WITH (autovacuum_vacuum_threshold='2000', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.edges (
    parent bigint NOT NULL,
    child bigint NOT NULL,
    need text NOT NULL COLLATE pg_catalog."C",
    otherwise text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT edges_need_check CHECK ((need = ANY (ARRAY['completed'::text, 'ended'::text, 'failed'::text]))),
    CONSTRAINT edges_otherwise_check CHECK ((otherwise = ANY (ARRAY['cancel'::text, 'run'::text]))),
    CONSTRAINT edges_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'met'::text, 'broke'::text, 'void'::text])))
)
WITH (autovacuum_vacuum_threshold='2000', autovacuum_vacuum_scale_factor='0.02');
CREATE TABLE queuectl.job_tags (
    tag text NOT NULL COLLATE pg_catalog."C",
    job bigint NOT NULL
);
CREATE TABLE queuectl.jobs (
    seq bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    command text,
    argv text,
    state text DEFAULT 'pending'::text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    ready boolean NOT NULL,
    ready_since xid8 DEFAULT pg_current_xact_id() NOT NULL,
    priority integer NOT NULL,
    rank bigint NOT NULL,
    eligible_at bigint NOT NULL,
    missed bigint DEFAULT 0 NOT NULL,
    effective_priority bigint,
    run_at bigint NOT NULL,
    held boolean DEFAULT false NOT NULL,
    max_retries integer NOT NULL,
    first_is_free boolean NOT NULL,
    backoff_base double precision NOT NULL,
    timeout_ms bigint,
    cwd text NOT NULL,
    env text,
    tags text DEFAULT '[]'::text NOT NULL,
    unique_key text,
    attempts integer DEFAULT 0 NOT NULL,
    runs integer DEFAULT 0 NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    token text,
    last_token text,
    worker text COLLATE pg_catalog."C",
    host text,
    pid bigint,
    claimed_seq bigint,
    cancel_requested boolean DEFAULT false NOT NULL,
    started_at bigint,
    finished_at bigint,
    duration_ms bigint,
    wait_ms bigint,
    exit_code integer,
    signal integer,
    error text,
    ending text,
    log text,
    log_from bigint,
    log_to bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    batch text COLLATE pg_catalog."C",
    cron text COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    aside boolean DEFAULT false NOT NULL,
    depends_on text,
    places integer,
    hooks text,
    limits text,
    usage text,
    secrets text,
    CONSTRAINT jobs_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT jobs_backoff_base_check CHECK ((backoff_base >= (1)::double precision)),
    CONSTRAINT jobs_check CHECK ((runs >= attempts)),
    CONSTRAINT jobs_check1 CHECK ((updated_at >= created_at)),
    CONSTRAINT jobs_check2 CHECK (((command IS NULL) <> (argv IS NULL))),
    CONSTRAINT jobs_check3 CHECK (((token IS NOT NULL) = (state = 'processing'::text))),
    CONSTRAINT jobs_check4 CHECK (((ending IS NULL) OR (token IS NULL))),
    CONSTRAINT jobs_check5 CHECK (((NOT ready) OR ((state = ANY (ARRAY['pending'::text, 'failed'::text])) AND (NOT held)))),
    CONSTRAINT jobs_check6 CHECK (((finished_at IS NOT NULL) OR (state <> ALL (ARRAY['completed'::text, 'dead'::text, 'cancelled'::text])))),
    CONSTRAINT jobs_check7 CHECK (((NOT aside) OR (ready AND (key IS NOT NULL)))),
    CONSTRAINT jobs_check8 CHECK (((places IS NULL) OR ((places >= 1) AND (key IS NOT NULL)))),
    CONSTRAINT jobs_crashes_check CHECK ((crashes >= 0)),
    CONSTRAINT jobs_duration_ms_check CHECK ((duration_ms >= 0)),
    CONSTRAINT jobs_ending_check CHECK ((ending = ANY (ARRAY['completed'::text, 'failed'::text, 'timeout'::text, 'signalled'::text, 'unstartable'::text, 'cancelled'::text, 'released'::text, 'lost'::text]))),
    CONSTRAINT jobs_id_check CHECK (((length(id) >= 1) AND (length(id) <= 128))),
    CONSTRAINT jobs_max_retries_check CHECK (((max_retries >= 0) AND (max_retries <= 1000000))),
    CONSTRAINT jobs_priority_check CHECK (((priority >= '-1000000'::integer) AND (priority <= 1000000))),
    CONSTRAINT jobs_queue_check CHECK (((length(queue) >= 1) AND (length(queue) <= 64))),
    CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['blocked'::text, 'pending'::text, 'processing'::text, 'failed'::text, 'completed'::text, 'dead'::text, 'cancelled'::text]))),
    CONSTRAINT jobs_timeout_ms_check CHECK ((timeout_ms > 0)),
    CONSTRAINT jobs_wait_ms_check CHECK ((wait_ms >= 0))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='1', autovacuum_vacuum_cost_limit='2000', autovacuum_analyze_scale_factor='0.05');
ALTER TABLE queuectl.jobs ALTER COLUMN seq ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME queuectl.jobs_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE queuectl.meta (
    one boolean DEFAULT true NOT NULL,
    version integer NOT NULL,
    id text NOT NULL,
    ageing text DEFAULT 'off'::text NOT NULL,
    step_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT meta_one_check CHECK (one)
);
CREATE TABLE queuectl.moves (
    queue text NOT NULL COLLATE pg_catalog."C",
    was text NOT NULL COLLATE pg_catalog."C",
    now text NOT NULL COLLATE pg_catalog."C",
    ending text NOT NULL COLLATE pg_catalog."C",
    jobs bigint NOT NULL
)
WITH (autovacuum_vacuum_threshold='2000', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.output (
    job bigint NOT NULL,
    run integer NOT NULL,
    at bigint NOT NULL,
    data bytea NOT NULL,
    CONSTRAINT output_at_check CHECK ((at >= 0)),
    CONSTRAINT output_data_check CHECK ((length(data) > 0)),
    CONSTRAINT output_run_check CHECK ((run >= 1))
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='2000');
CREATE TABLE queuectl.points (
    span text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    covers_ms bigint NOT NULL,
    enqueued bigint NOT NULL,
    started bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    retried bigint NOT NULL,
    rescued bigint NOT NULL,
    waiting bigint NOT NULL,
    running bigint NOT NULL,
    oldest_ms bigint,
    run text NOT NULL,
    wait text NOT NULL,
    CONSTRAINT points_covers_ms_check CHECK ((covers_ms >= 0)),
    CONSTRAINT points_span_check CHECK ((span = ANY (ARRAY['minute'::text, 'hour'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0.02');
CREATE TABLE queuectl.queues (
    name text NOT NULL COLLATE pg_catalog."C",
    paused boolean DEFAULT false NOT NULL,
    concurrency integer,
    rate_starts integer,
    rate_ms bigint,
    priority integer,
    max_retries integer,
    timeout_ms bigint,
    per_key integer,
    on_success text,
    on_failure text,
    on_dead text,
    limits text,
    CONSTRAINT queues_check CHECK (((rate_starts IS NULL) = (rate_ms IS NULL))),
    CONSTRAINT queues_concurrency_check CHECK ((concurrency >= 1)),
    CONSTRAINT queues_max_retries_check CHECK (((max_retries >= 0) AND (max_retries <= 1000000))),
    CONSTRAINT queues_name_check CHECK (((length(name) >= 1) AND (length(name) <= 64))),
    CONSTRAINT queues_per_key_check CHECK ((per_key >= 1)),
    CONSTRAINT queues_priority_check CHECK (((priority >= '-1000000'::integer) AND (priority <= 1000000))),
    CONSTRAINT queues_rate_ms_check CHECK ((rate_ms >= 1)),
    CONSTRAINT queues_rate_starts_check CHECK ((rate_starts >= 1)),
    CONSTRAINT queues_timeout_ms_check CHECK ((timeout_ms >= 0))
);
CREATE TABLE queuectl.requests (
    key text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL COLLATE pg_catalog."C",
    answer text NOT NULL,
    at bigint NOT NULL
)
WITH (autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0.02');
CREATE TABLE queuectl.runs (
    job bigint NOT NULL,
    number integer NOT NULL,
    worker text NOT NULL,
    host text NOT NULL,
    pid bigint,
    started_at bigint,
    finished_at bigint NOT NULL,
    duration_ms bigint,
    exit_code integer,
    signal integer,
    error text,
    ending text NOT NULL,
    log_from bigint,
    log_to bigint,
    token text NOT NULL,
    usage text,
    CONSTRAINT runs_duration_ms_check CHECK ((duration_ms >= 0)),
    CONSTRAINT runs_ending_check CHECK ((ending = ANY (ARRAY['completed'::text, 'failed'::text, 'timeout'::text, 'signalled'::text, 'unstartable'::text, 'cancelled'::text, 'released'::text, 'lost'::text]))),
    CONSTRAINT runs_number_check CHECK ((number >= 1))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05');
CREATE TABLE queuectl.sampling (
    one integer NOT NULL,
    at bigint,
    until bigint NOT NULL,
    removals bigint NOT NULL,
    CONSTRAINT sampling_one_check CHECK ((one = 1))
)
WITH (fillfactor='10', autovacuum_vacuum_threshold='100', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.schedules (
    name text NOT NULL COLLATE pg_catalog."C",
    expression text NOT NULL,
    tz text NOT NULL,
    anchor_at bigint NOT NULL,
    fields text NOT NULL,
    overlap text NOT NULL,
    catch_up integer NOT NULL,
    jitter_ms bigint NOT NULL,
    until_at bigint,
    paused boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    tick_at bigint,
    start_at bigint,
    look_at bigint,
    last_at bigint,
    waiting text COLLATE pg_catalog."C",
    CONSTRAINT schedules_catch_up_check CHECK ((catch_up >= 0)),
    CONSTRAINT schedules_check CHECK (((NOT paused) OR (tick_at IS NULL))),
    CONSTRAINT schedules_check1 CHECK (((tick_at IS NULL) = (start_at IS NULL))),
    CONSTRAINT schedules_jitter_ms_check CHECK ((jitter_ms >= 0)),
    CONSTRAINT schedules_name_check CHECK (((length(name) >= 1) AND (length(name) <= 64))),
    CONSTRAINT schedules_overlap_check CHECK ((overlap = ANY (ARRAY['skip'::text, 'queue'::text, 'allow'::text])))
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='500', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.starts (
    queue text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    job bigint NOT NULL,
    run integer NOT NULL,
    at bigint NOT NULL,
    CONSTRAINT starts_number_check CHECK ((number >= 1))
)
WITH (autovacuum_vacuum_threshold='2000', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.ticks (
    schedule text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    by_hand boolean NOT NULL,
    decided_at bigint NOT NULL,
    job text COLLATE pg_catalog."C",
    reason text,
    times integer NOT NULL,
    CONSTRAINT ticks_check CHECK (((job IS NULL) <> (reason IS NULL))),
    CONSTRAINT ticks_times_check CHECK ((times >= 1))
)
WITH (autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.undecided (
    parent bigint NOT NULL
)
WITH (autovacuum_vacuum_threshold='500', autovacuum_vacuum_scale_factor='0');
CREATE TABLE queuectl.workers (
    id text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL,
    machine text NOT NULL,
    lock text NOT NULL,
    pid bigint NOT NULL,
    home text NOT NULL,
    state text NOT NULL,
    stop text,
    slots integer NOT NULL,
    queues text,
    started_at bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    beats bigint DEFAULT 0 NOT NULL,
    jobs_done bigint DEFAULT 0 NOT NULL,
    CONSTRAINT workers_slots_check CHECK (((slots >= 1) AND (slots <= 1000))),
    CONSTRAINT workers_state_check CHECK ((state = ANY (ARRAY['running'::text, 'stopping'::text, 'lost'::text]))),
    CONSTRAINT workers_stop_check CHECK ((stop = ANY (ARRAY['finish'::text, 'now'::text, 'restart'::text])))
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='500', autovacuum_vacuum_scale_factor='0');
INSERT INTO queuectl.audit VALUES (1, 1794996827314, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"config set","subjects":["max-retries"],"before":{"max-retries":null},"after":{"max-retries":"5"}}', 'ae858aa899b2173f8aa47832e2191d7ff0f50ebf7d992a7bcb64ee527b28b5f8');
INSERT INTO queuectl.audit VALUES (2, 1794996829031, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["done"],"before":null,"after":{"jobs":[{"command":"echo hello","queue":"default","priority":0}]}}', '285328606e47bd6b3da86f3bb74cd315b36d24a031f2229b01fd634a64ad0f04');
INSERT INTO queuectl.audit VALUES (3, 1794996830960, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["bad"],"before":null,"after":{"jobs":[{"command":"exit 3","queue":"other","priority":0}]}}', 'a7dc544f3ae3d80f26fb9beac4216dc933bc6cf236d4d829633c617ae7e04e92');
INSERT INTO queuectl.audit VALUES (4, 1794996832509, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["again"],"before":null,"after":{"jobs":[{"command":"exit 4","queue":"default","priority":5}]}}', 'bbae16778637654bd5fea0338876a847d944a19a3ae89eae5cae792cedf3ea35');
INSERT INTO queuectl.audit VALUES (5, 1794996834779, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["child"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0}]}}', '603eb318c09c82ddd190d4acc0aa56a0b62e5be0e513ccf365c6c9f0ba05725f');
INSERT INTO queuectl.audit VALUES (6, 1794996840111, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["later"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0}]}}', '94dd24e448122f42aed91d71fbae0ebf50baeca185bb7e83bebc1cd9357b0012');
INSERT INTO queuectl.audit VALUES (7, 1794996841641, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["words"],"before":null,"after":{"jobs":[{"command":"printf %s a b","queue":"default","priority":0}]}}', '6a534eb33d2611890d58c2693bcc90cfcea90dca6a6bfb8706ad729c8337d83a');
INSERT INTO queuectl.audit VALUES (8, 1794996843148, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["only"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0,"unique":"k1"}]}}', '029134da6fcc962b156370ca5ee766e4a3e0c3f7bdfd524f65a4f8e1facc198c');
INSERT INTO queuectl.audit VALUES (9, 1794996844586, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["batched"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0,"batch":"b1"}]}}', 'db8775c74eb40ad840b29f5d7b1d107ede708132ed9dacdaa63a7b736ddaecb6');
INSERT INTO queuectl.audit VALUES (10, 1794996845924, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"cron add","subjects":["nightly"],"before":null,"after":{"name":"nightly","expression":"0 2 * * *","tz":"Etc/UTC","anchor_ms":1794996845913,"fields":{"command":"true","cwd":"/"},"overlap":"skip","catch_up":1,"jitter_ms":0,"until_ms":null,"is_paused":false}}', 'b6b7e5055cbf7d542780af53671d53724fa91bcb2d06d30b1c59483a3cb01e9f');
INSERT INTO queuectl.audit VALUES (11, 1794996847503, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"queue set","subjects":["other"],"before":{"concurrency":null},"after":{"concurrency":2}}', '7bd02094ae70ee1b5eda6e227efe939dd74e7800f39be6f5ac09f2f405ca64db');
INSERT INTO queuectl.audit VALUES (12, 1794996848952, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["keyed"],"before":null,"after":{"jobs":[{"command":"true","queue":"other","priority":0}]}}', 'eb090de3fdbe08f097c92b70f6b29d751cd42c5a7a60bb5a36587a4b555c3bbc');
INSERT INTO queuectl.audit VALUES (13, 1794996850979, '{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["blocked"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0}]}}', '61a1cef093a5c9ad7502c29549b7e1fc3babf17038f01101e988d78345ce7fe8');
INSERT INTO queuectl.audit_ends VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000', 13, '61a1cef093a5c9ad7502c29549b7e1fc3babf17038f01101e988d78345ce7fe8');
INSERT INTO queuectl.batches VALUES ('b1', 1, 1794996844583, NULL, NULL, NULL);
INSERT INTO queuectl.config VALUES ('max-retries', '5');
INSERT INTO queuectl.counters VALUES ('default', 3, 2, 1, 1, 0, 0, 0);
INSERT INTO queuectl.counters VALUES ('other', 1, 1, 0, 0, 0, 0, 0);
INSERT INTO queuectl.done VALUES ('old', 1);
INSERT INTO queuectl.done VALUES ('old', 1);
INSERT INTO queuectl.done VALUES ('old', 1);
INSERT INTO queuectl.edges VALUES (1, 4, 'completed', 'cancel', 'met');
INSERT INTO queuectl.edges VALUES (5, 10, 'completed', 'cancel', 'waiting');
INSERT INTO queuectl.job_tags VALUES ('old', 1);
INSERT INTO queuectl.jobs VALUES (3, 'again', 'exit 4', NULL, 'failed', 'default', false, '783', 5, -5, 1794996832509, 0, NULL, 1794997837449, false, 5, false, 1000, NULL, '/', NULL, '[]', NULL, 1, 1, 0, NULL, '45d70d0ca00f7d90d9265ac0', 'old', 'earlier', 16017, 4, false, 1794996837424, 1794996837435, 11, 4915, 4, NULL, 'exit code 4', 'failed', '/tmp/queuectl/home/logs/again.log', 56, 56, 1794996832509, 1794996837449, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, '[0,0,15294464,0,0]', NULL);
INSERT INTO queuectl.jobs VALUES (1, 'done', 'echo hello', NULL, 'completed', 'default', false, '783', 0, 0, 1794996829031, 0, 0, 1794996829031, false, 5, false, 2, NULL, '/', '{"A": "b"}', '["old"]', NULL, 0, 1, 0, NULL, '56f168d8ad30488ce61e7518', 'old', 'earlier', 16019, 4, false, 1794996837427, 1794996837435, 8, 8396, 0, NULL, NULL, 'completed', '/tmp/queuectl/home/logs/done.log', 56, 62, 1794996829031, 1794996837449, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, '[0,0,15294464,0,0]', NULL);
INSERT INTO queuectl.jobs VALUES (2, 'bad', 'exit 3', NULL, 'dead', 'other', false, '788', 0, 0, 1794996830960, 0, 0, 1794996830960, false, 1, false, 2, NULL, '/', NULL, '[]', NULL, 1, 1, 0, NULL, '4fb5d0f78e76ccb1a3c7a56e', 'old', 'earlier', 16031, 4, false, 1794996837553, 1794996837560, 7, 6593, 3, NULL, 'exit code 3', 'failed', '/tmp/queuectl/home/logs/bad.log', 56, 56, 1794996830960, 1794996837606, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, '[0,0,15294464,0,0]', NULL);
INSERT INTO queuectl.jobs VALUES (4, 'child', 'true', NULL, 'completed', 'default', false, '789', 0, 0, 1794996837530, 0, 0, 1794996837530, false, 5, false, 2, NULL, '/', NULL, '[]', NULL, 0, 1, 0, NULL, '1867e765b3446e10d4cee078', 'old', 'earlier', 16039, 4, false, 1794996837690, 1794996837691, 1, 160, 0, NULL, NULL, 'completed', '/tmp/queuectl/home/logs/child.log', 56, 56, 1794996834747, 1794996837695, NULL, NULL, NULL, false, '["done"]', NULL, NULL, NULL, '[0,0,15294464,0,0]', NULL);
INSERT INTO queuectl.jobs VALUES (5, 'later', 'true', NULL, 'pending', 'default', false, '791', 0, 0, 2109492840111, 0, NULL, 2109492840111, false, 5, false, 2, NULL, '/', NULL, '[]', NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794996840111, 1794996840111, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queuectl.jobs VALUES (6, 'words', NULL, '["printf", "%s", "a b"]', 'pending', 'default', true, '793', 0, 0, 1794996841641, 0, NULL, 1794996841641, false, 5, false, 2, NULL, '/', NULL, '[]', NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794996841641, 1794996841641, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queuectl.jobs VALUES (7, 'only', 'true', NULL, 'pending', 'default', false, '795', 0, 0, 2109492843126, 0, NULL, 2109492843126, false, 5, false, 2, NULL, '/', NULL, '[]', 'k1', 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794996843126, 1794996843126, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queuectl.jobs VALUES (8, 'batched', 'true', NULL, 'pending', 'default', true, '797', 0, 0, 1794996844583, 0, NULL, 1794996844583, false, 5, false, 2, NULL, '/', NULL, '[]', NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794996844583, 1794996844583, 'b1', NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queuectl.jobs VALUES (9, 'keyed', 'true', NULL, 'pending', 'other', true, '803', 0, 0, 1794996848952, 0, NULL, 1794996848952, false, 5, false, 2, NULL, '/', NULL, '[]', NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794996848952, 1794996848952, NULL, NULL, 'c7', false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queuectl.jobs VALUES (10, 'blocked', 'true', NULL, 'blocked', 'default', false, '805', 0, 0, 1794996850969, 0, NULL, 1794996850969, false, 5, false, 2, NULL, '/', NULL, '[]', NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794996850969, 1794996850969, NULL, NULL, NULL, false, '["later"]', NULL, NULL, NULL, NULL, NULL);
INSERT INTO queuectl.meta VALUES (true, 16, '56924a8566a149ca999e13811484ee59', 'off', 0);
INSERT INTO queuectl.moves VALUES ('default', '', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('other', '', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('default', '', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('default', '', 'blocked', '', 1);
INSERT INTO queuectl.moves VALUES ('default', 'pending', 'processing', '', 2);
INSERT INTO queuectl.moves VALUES ('default', 'processing', 'completed', 'completed', 1);
INSERT INTO queuectl.moves VALUES ('default', 'processing', 'failed', 'failed', 1);
INSERT INTO queuectl.moves VALUES ('other', 'pending', 'processing', '', 1);
INSERT INTO queuectl.moves VALUES ('default', 'blocked', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('other', 'processing', 'dead', 'failed', 1);
INSERT INTO queuectl.moves VALUES ('default', 'pending', 'processing', '', 1);
INSERT INTO queuectl.moves VALUES ('default', 'processing', 'completed', 'completed', 1);
INSERT INTO queuectl.moves VALUES ('default', '', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('default', '', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('default', '', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('default', '', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('other', '', 'pending', '', 1);
INSERT INTO queuectl.moves VALUES ('default', '', 'blocked', '', 1);
INSERT INTO queuectl.output VALUES (1, 1, 0, '\x68656c6c6f0a');
INSERT INTO queuectl.points VALUES ('minute', '', 1794996780000, 8524, 4, 3, 1, 1, 0, 0, 0, 2, 1, 25, '[]', '[]');
INSERT INTO queuectl.points VALUES ('minute', 'default', 1794996780000, 8524, 3, 2, 1, 1, 0, 0, 0, 2, 0, 25, '[]', '[]');
INSERT INTO queuectl.points VALUES ('minute', 'other', 1794996780000, 8524, 1, 1, 0, 0, 0, 0, 0, 0, 1, NULL, '[]', '[]');
INSERT INTO queuectl.points VALUES ('hour', '', 1794996000000, 8524, 4, 3, 1, 1, 0, 0, 0, 2, 1, 25, '[]', '[]');
INSERT INTO queuectl.points VALUES ('hour', 'default', 1794996000000, 8524, 3, 2, 1, 1, 0, 0, 0, 2, 0, 25, '[]', '[]');
INSERT INTO queuectl.points VALUES ('hour', 'other', 1794996000000, 8524, 1, 1, 0, 0, 0, 0, 0, 0, 1, NULL, '[]', '[]');
INSERT INTO queuectl.queues VALUES ('other', false, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queuectl.sampling VALUES (1, 1794996837555, 1794996832555, 0);
INSERT INTO queuectl.schedules VALUES ('nightly', '0 2 * * *', 'Etc/UTC', 1794996845913, '{"command": "true", "cwd": "/"}', 'skip', 1, 0, NULL, false, 1794996845913, 1794996845913, 1795053600000, 1795053600000, 1795053600000, NULL, NULL);
INSERT INTO queuectl.undecided VALUES (5);
SELECT pg_catalog.setval('queuectl.jobs_seq_seq', 10, true);
ALTER TABLE ONLY queuectl.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (name);
ALTER TABLE ONLY queuectl.audit_ends
    ADD CONSTRAINT audit_ends_pkey PRIMARY KEY (one);
ALTER TABLE ONLY queuectl.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY queuectl.batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (name);
ALTER TABLE ONLY queuectl.buckets
    ADD CONSTRAINT buckets_pkey PRIMARY KEY (queue, what, bucket);
ALTER TABLE ONLY queuectl.config
    ADD CONSTRAINT config_pkey PRIMARY KEY (key);
ALTER TABLE ONLY queuectl.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (queue);
ALTER TABLE ONLY queuectl.edges
    ADD CONSTRAINT edges_pkey PRIMARY KEY (child, parent);
ALTER TABLE ONLY queuectl.job_tags
    ADD CONSTRAINT job_tags_pkey PRIMARY KEY (tag, job);
ALTER TABLE ONLY queuectl.jobs
    ADD CONSTRAINT jobs_id_key UNIQUE (id);
ALTER TABLE ONLY queuectl.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY queuectl.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (one);
ALTER TABLE ONLY queuectl.output
    ADD CONSTRAINT output_pkey PRIMARY KEY (job, run, at);
ALTER TABLE ONLY queuectl.points
    ADD CONSTRAINT points_pkey PRIMARY KEY (span, queue, at);
ALTER TABLE ONLY queuectl.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);
ALTER TABLE ONLY queuectl.requests
    ADD CONSTRAINT requests_pkey PRIMARY KEY (key);
ALTER TABLE ONLY queuectl.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (job, number);
ALTER TABLE ONLY queuectl.sampling
    ADD CONSTRAINT sampling_pkey PRIMARY KEY (one);
ALTER TABLE ONLY queuectl.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (name);
ALTER TABLE ONLY queuectl.starts
    ADD CONSTRAINT starts_pkey PRIMARY KEY (queue, number);
ALTER TABLE ONLY queuectl.ticks
    ADD CONSTRAINT ticks_pkey PRIMARY KEY (schedule, at, by_hand);
ALTER TABLE ONLY queuectl.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);
CREATE INDEX batches_open ON queuectl.batches USING btree (name) WHERE ((on_complete IS NOT NULL) AND (completed_at IS NULL));
CREATE INDEX edges_parent ON queuectl.edges USING btree (parent, state, need) INCLUDE (child);
CREATE INDEX job_tags_job ON queuectl.job_tags USING btree (job);
CREATE INDEX jobs_batch ON queuectl.jobs USING btree (batch, state) WHERE (batch IS NOT NULL);
CREATE INDEX jobs_called_off ON queuectl.jobs USING btree (worker) WHERE (cancel_requested AND (state = 'processing'::text));
CREATE INDEX jobs_completed ON queuectl.jobs USING btree (finished_at) WHERE (state = 'completed'::text);
CREATE INDEX jobs_cron ON queuectl.jobs USING btree (cron, state) WHERE (cron IS NOT NULL);
CREATE INDEX jobs_due ON queuectl.jobs USING btree (run_at) WHERE ((NOT ready) AND (NOT held) AND (state = ANY (ARRAY['pending'::text, 'failed'::text])));
CREATE INDEX jobs_ended ON queuectl.jobs USING btree (state, finished_at) WHERE ((state = ANY (ARRAY['dead'::text, 'cancelled'::text])) AND (finished_at IS NOT NULL));
CREATE INDEX jobs_fresh ON queuectl.jobs USING btree (ready_since) WHERE (ready AND (NOT aside));
CREATE INDEX jobs_key ON queuectl.jobs USING btree (unique_key, created_at, seq) WHERE (unique_key IS NOT NULL);
CREATE INDEX jobs_line ON queuectl.jobs USING btree (rank, seq) WHERE (ready AND (NOT aside));
CREATE INDEX jobs_of_key ON queuectl.jobs USING btree (queue, key, rank, seq) WHERE (ready AND (key IS NOT NULL));
CREATE INDEX jobs_oldest ON queuectl.jobs USING btree (queue, run_at) WHERE ready;
CREATE INDEX jobs_places ON queuectl.jobs USING btree (queue) WHERE ((places IS NOT NULL) AND (state = ANY (ARRAY['blocked'::text, 'pending'::text, 'processing'::text, 'failed'::text])));
CREATE INDEX jobs_ready ON queuectl.jobs USING btree (queue, rank, seq) WHERE (ready AND (NOT aside));
CREATE INDEX jobs_running ON queuectl.jobs USING btree (worker, seq) WHERE (state = 'processing'::text);
CREATE INDEX jobs_running_key ON queuectl.jobs USING btree (queue, key) WHERE ((state = 'processing'::text) AND (key IS NOT NULL));
CREATE INDEX jobs_state ON queuectl.jobs USING btree (state, seq) WHERE (state <> 'processing'::text);
CREATE UNIQUE INDEX jobs_unique ON queuectl.jobs USING btree (unique_key) WHERE ((unique_key IS NOT NULL) AND (state <> 'completed'::text) AND (state <> 'dead'::text) AND (state <> 'cancelled'::text));
CREATE INDEX points_at ON queuectl.points USING btree (span, at);
CREATE INDEX requests_at ON queuectl.requests USING btree (at);
CREATE INDEX schedules_look ON queuectl.schedules USING btree (look_at) WHERE (look_at IS NOT NULL);
CREATE TRIGGER audit_is_kept BEFORE DELETE ON queuectl.audit FOR EACH ROW EXECUTE FUNCTION queuectl.keep_audit();
CREATE TRIGGER audit_is_whole BEFORE TRUNCATE ON queuectl.audit FOR EACH STATEMENT EXECUTE FUNCTION queuectl.refuse_audit();
CREATE TRIGGER audit_stays BEFORE UPDATE ON queuectl.audit FOR EACH ROW EXECUTE FUNCTION queuectl.refuse_audit();
CREATE TRIGGER jobs_ended AFTER UPDATE OF state ON queuectl.jobs FOR EACH ROW WHEN (((new.state = ANY (ARRAY['completed'::text, 'dead'::text, 'cancelled'::text])) <> (old.state = ANY (ARRAY['completed'::text, 'dead'::text, 'cancelled'::text])))) EXECUTE FUNCTION queuectl.note_fate();
CREATE TRIGGER jobs_let_go AFTER UPDATE OF state ON queuectl.jobs FOR EACH ROW WHEN ((((old.state = 'blocked'::text) AND (new.state <> 'blocked'::text)) OR ((old.state = 'cancelled'::text) AND (new.state = 'pending'::text)))) EXECUTE FUNCTION queuectl.let_go();
ALTER TABLE ONLY queuectl.ticks
    ADD CONSTRAINT ticks_schedule_fkey FOREIGN KEY (schedule) REFERENCES queuectl.schedules(name) ON DELETE CASCADE;
