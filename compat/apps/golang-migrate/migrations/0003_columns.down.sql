ALTER TABLE people RENAME person TO id;
ALTER TABLE people DROP age;
