INSERT INTO vets (id, first_name, last_name) VALUES
  (1, 'Ada', 'Winter'), (2, 'Bruno', 'Castell'), (3, 'Clara', 'Nyberg'),
  (4, 'Dmitri', 'Oduya'), (5, 'Elena', 'Marsh'), (6, 'Farid', 'Kessler');

INSERT INTO specialties (id, name) VALUES (1, 'radiology'), (2, 'surgery'), (3, 'dentistry');

INSERT INTO vet_specialties (vet_id, specialty_id) VALUES (2, 1), (3, 2), (3, 3), (4, 2), (5, 1);
