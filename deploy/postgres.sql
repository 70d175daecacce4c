-- The role of the replicas is no superuser: row-level security holds for it.
\set password `cat /run/secrets/funnel-password`
create role funnel login password :'password';
create database funnel owner funnel;
