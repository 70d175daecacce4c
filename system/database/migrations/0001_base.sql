create table funnel_schema (version int primary key, at timestamptz not null default now());

-- Gives a table row-level security: a transaction sees the rows of the owner that it has set, the operator's ('*') all.
create function funnel_protect(t regclass) returns void language plpgsql as $$
begin
	execute format('alter table %s enable row level security', t);
	execute format('alter table %s force row level security', t);
	execute format($sql$create policy owner on %s using
		(owner = current_setting('funnel.owner', true) or current_setting('funnel.owner', true) = '*')$sql$, t);
end $$;

-- Processes that are alive, by their heartbeats.
create table replicas (
	process text primary key,
	owner text not null check (owner <> ''),
	replica text not null,
	seen timestamptz not null
);
select funnel_protect('replicas');

-- Small things that are kept between calls. A version does not return when a record is made again.
create sequence records_version;
create table records (
	owner text not null check (owner <> ''),
	kind text not null,
	name text not null,
	version bigint not null,
	body bytea not null,
	used timestamptz not null,
	primary key (owner, kind, name)
);
create index records_used on records (kind, used);
select funnel_protect('records');

-- One line for each call, in the partition of its day.
create sequence trace_seq;
create table trace (
	owner text not null check (owner <> ''),
	at timestamptz not null,
	day date not null,
	seq bigint not null default nextval('trace_seq'),
	line text not null
) partition by list (day);
create index trace_order on trace (day, seq);
select funnel_protect('trace');

-- Makes the partition of a day, if there is none; returns whether it did.
create function funnel_trace_day(d date) returns boolean language plpgsql as $$
declare
	part text := 'trace_' || to_char(d, 'YYYYMMDD');
begin
	for attempt in 1..2 loop
		-- Not to_regclass, which would answer from a cache that is older than the lock.
		if exists (select from pg_class where relname = part and relnamespace = current_schema()::regnamespace) then
			return false;
		end if;
		perform pg_advisory_xact_lock(hashtextextended(current_schema() || '.trace', 0));
	end loop;
	execute format('create table %I partition of trace for values in (%L)', part, d);
	perform funnel_protect(part);
	return true;
end $$;

-- Removes the partitions of days before one.
create function funnel_trace_expire(before date) returns void language plpgsql as $$
declare
	part regclass;
begin
	perform set_config('lock_timeout', '2s', true); -- others must not wait behind it
	for part in select inhrelid::regclass from pg_inherits join pg_class on pg_class.oid = inhrelid
		where inhparent = 'trace'::regclass and relname < 'trace_' || to_char(before, 'YYYYMMDD')
	loop
		execute format('drop table %s', part);
	end loop;
end $$;
