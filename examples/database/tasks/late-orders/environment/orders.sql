CREATE TABLE orders (id int PRIMARY KEY, due date NOT NULL, shipped date NOT NULL, late boolean NOT NULL DEFAULT false);
INSERT INTO orders (id, due, shipped, late) VALUES
  (1, '2026-01-10', '2026-01-09', true),
  (2, '2026-01-10', '2026-01-12', false),
  (3, '2026-02-01', '2026-02-01', false),
  (4, '2026-02-03', '2026-03-01', false),
  (5, '2026-02-05', '2026-02-06', true);
