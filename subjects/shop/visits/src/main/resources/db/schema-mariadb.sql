-- Afresh with every start.
DROP TABLE IF EXISTS visits;

CREATE TABLE visits (
  id INTEGER AUTO_INCREMENT PRIMARY KEY,
  pet_id INTEGER NOT NULL,
  visit_date DATE NOT NULL,
  description VARCHAR(8192) NOT NULL
);

CREATE INDEX visits_pet_id ON visits (pet_id);
