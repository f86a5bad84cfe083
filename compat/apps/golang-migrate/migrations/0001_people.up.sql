CREATE TYPE address (street text, city text);
CREATE TABLE people (id uuid PRIMARY KEY, name text, home frozen<address>, tags set<text>);
CREATE INDEX people_by_name ON people (name);
