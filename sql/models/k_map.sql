-- k_map: the members of each class in the population.  Sweeney 2001.
-- reads:   classes(class_id, n, suppressed), population_classes(class_id, n)
-- params:
-- returns: class_id, n, value
SELECT c.class_id, c.n, coalesce(p.n, 0) AS value
FROM classes AS c LEFT JOIN population_classes AS p ON p.class_id = c.class_id
WHERE NOT c.suppressed
