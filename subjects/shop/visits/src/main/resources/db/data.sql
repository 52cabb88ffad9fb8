INSERT INTO visits (id, pet_id, visit_date, description) VALUES
  (1, 2, '2024-02-01', 'vaccination'), (2, 2, '2024-08-15', 'check-up'),
  (3, 8, '2024-03-09', 'clipped claws'), (4, 7, '2024-05-28', 'sore paw');
