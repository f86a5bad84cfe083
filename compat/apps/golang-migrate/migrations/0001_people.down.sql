DROP INDEX people_by_name;
DROP TABLE people;
DROP TYPE address;
