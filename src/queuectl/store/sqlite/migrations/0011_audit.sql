-- Who changed what, in a chain: see job/audit.py. What is in it stays as it is; only the oldest go, when they have been kept long enough.
create table audit (
    seq integer primary key,
    at integer not null,
    record text not null,  -- who, what, before and after, as JSON
    hash text not null     -- of this and of the one before
) strict;

create index audit_at on audit (at);

-- Where the chain begins and ends: `base` is the last record that was forgotten. No row: there is none yet.
create table audit_ends (
    one integer primary key check (one = 1),
    base integer not null,
    base_hash text not null,
    head integer not null check (head >= base),
    head_hash text not null
) strict;

create trigger audit_stays before update on audit
begin
    select raise(abort, 'what is in the audit is not changed');
end;

create trigger audit_is_kept before delete on audit when old.seq > coalesce((select base from audit_ends), 0)
begin
    select raise(abort, 'what is in the audit is not removed');
end;
