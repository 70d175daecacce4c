-- Observations of all owners: the row is the sidecar, and the bytes too where they are few.
create table observations (
	id text primary key,
	owner text not null check (owner <> ''),
	created timestamptz not null,
	used timestamptz not null,
	expired timestamptz, -- when it became a tombstone
	pinned boolean not null default false,
	size bigint not null, -- bytes of the data
	counted bigint not null, -- bytes that count for the quota: data, sidecar, receipt, index, sums
	sidecar bytea not null, -- without the receipt
	receipt text not null default '',
	body bytea -- the data, if they are not in an object
);
create index observations_owner on observations (owner, created);
create index observations_used on observations (used) where expired is null and not pinned;
create index observations_expired on observations (owner, expired) where expired is not null;

-- Line index and hashes of the blocks of an object.
create table blocks (
	id text primary key references observations on delete cascade,
	owner text not null check (owner <> ''),
	lines bytea not null,
	sums bytea not null
);

-- What each owner holds, with what it has reserved.
create table usage (
	owner text primary key,
	bytes bigint not null
);

-- Observations being written. Its reservation goes when an observation is committed or given up, never before.
create table reservations (
	id text primary key,
	owner text not null check (owner <> ''),
	bytes bigint not null,
	process text not null,
	at timestamptz not null default now()
);

-- Objects to delete, once nobody reads them any more.
create table removals (
	id text primary key,
	owner text not null check (owner <> ''),
	due timestamptz not null
);

-- The name of the bucket that belongs to these rows, which has it too.
create table place (
	owner text primary key,
	name text not null
);

select funnel_protect(t::regclass) from unnest(array['place', 'observations', 'blocks', 'usage', 'reservations', 'removals']) t;
