-- What a call was asked and showed, as JSON; null if that is not kept. Reading the lines does not read it.
alter table trace add column shown text;
