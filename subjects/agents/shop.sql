CREATE TABLE product (id integer PRIMARY KEY, name text NOT NULL, cents integer NOT NULL)
CREATE TABLE stock (product integer NOT NULL REFERENCES product, place text NOT NULL, pieces integer NOT NULL, PRIMARY KEY (product, place))
CREATE TABLE review (id integer PRIMARY KEY, product integer NOT NULL REFERENCES product, stars integer NOT NULL, words text NOT NULL)
INSERT INTO product SELECT id, 'product ' || id, 100 + id * 7 % 900 FROM generate_series(1, 500) AS id
INSERT INTO stock SELECT id, place, id * 13 % 40 FROM generate_series(1, 500) AS id, (VALUES ('north'), ('south'), ('west')) AS places (place)
INSERT INTO review SELECT id, 1 + id % 500, 1 + id % 5, 'review ' || id FROM generate_series(1, 5000) AS id
CREATE INDEX review_product ON review (product, id)
