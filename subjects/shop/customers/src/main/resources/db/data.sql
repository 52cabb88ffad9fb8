INSERT INTO types (id, name) VALUES (1, 'cat'), (2, 'dog'), (3, 'parrot'), (4, 'tortoise'), (5, 'rabbit'), (6, 'ferret');

INSERT INTO owners (id, first_name, last_name, address, city, telephone) VALUES
  (1, 'Greta', 'Lund', '12 Harbour Road', 'Alderton', '5550100101'),
  (2, 'Hugo', 'Amsel', '4 Mill Lane', 'Brackwater', '5550100102'),
  (3, 'Ines', 'Ferro', '77 Station Street', 'Corbin', '5550100103'),
  (4, 'Jonas', 'Weaver', '9 Orchard Close', 'Alderton', '5550100104'),
  (5, 'Katya', 'Brandt', '31 Quarry Hill', 'Dunmore', '5550100105'),
  (6, 'Liam', 'Soto', '2 Chapel Square', 'Brackwater', '5550100106'),
  (7, 'Mona', 'Eklund', '58 River Walk', 'Eastling', '5550100107'),
  (8, 'Nils', 'Tanaka', '16 Beech Avenue', 'Corbin', '5550100108'),
  (9, 'Olga', 'Pires', '23 Market Row', 'Dunmore', '5550100109'),
  (10, 'Pablo', 'Quist', '8 Lighthouse Way', 'Eastling', '5550100110');

INSERT INTO pets (id, name, birth_date, type_id, owner_id) VALUES
  (1, 'Biscuit', '2019-04-02', 2, 1), (2, 'Comet', '2020-09-17', 1, 2), (3, 'Dotty', '2018-01-30', 5, 3),
  (4, 'Echo', '2021-06-11', 3, 3), (5, 'Fig', '2017-12-05', 4, 4), (6, 'Ginger', '2022-03-21', 1, 5),
  (7, 'Hazel', '2019-08-08', 6, 6), (8, 'Indigo', '2020-02-14', 3, 6), (9, 'Juno', '2016-10-27', 2, 7),
  (10, 'Kiwi', '2021-11-19', 3, 8), (11, 'Loki', '2018-05-25', 2, 9), (12, 'Maple', '2022-07-03', 5, 10),
  (13, 'Nemo', '2019-12-12', 1, 10);
