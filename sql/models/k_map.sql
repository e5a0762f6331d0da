-- k_map: classes with fewer than k members of the population.  Sweeney 2001.
-- reads:   classes(class_id, n, suppressed), population_classes(class_id, n)
-- params:  $k
-- returns: class_id, n
SELECT c.class_id, c.n
FROM classes AS c LEFT JOIN population_classes AS p ON p.class_id = c.class_id
WHERE NOT c.suppressed AND coalesce(p.n, 0) < $k
