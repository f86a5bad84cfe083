ALTER TABLE people ADD age int;
ALTER TABLE people RENAME id TO person;
ALTER TYPE address ADD country text;
ALTER TABLE visits WITH comment = 'one row a visit' AND gc_grace_seconds = 3600;
