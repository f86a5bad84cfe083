CREATE TABLE visits (person uuid, at timestamp, page text, PRIMARY KEY (person, at)) WITH CLUSTERING ORDER BY (at DESC) AND default_time_to_live = 86400;
CREATE TABLE hits (page text PRIMARY KEY, hits counter);
INSERT INTO people (id, name, tags) VALUES (00000000-0000-0000-0000-000000000001, 'first', {'a', 'b'});
UPDATE hits SET hits = hits + 1 WHERE page = 'start';
