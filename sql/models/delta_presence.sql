-- delta_presence: the share of each class of the population that is in the data; none without members.  Nergiz et al. 2007.
-- reads:   classes(class_id, n, suppressed), population_classes(class_id, n)
-- params:
-- returns: class_id, n, value
SELECT c.class_id, c.n, CASE WHEN p.n > 0 THEN c.n / CAST(p.n AS DOUBLE) END AS value
FROM classes AS c LEFT JOIN population_classes AS p ON p.class_id = c.class_id
WHERE NOT c.suppressed
UNION ALL
-- Classes of the population without a row in the data.
SELECT p.class_id, CAST(0 AS BIGINT) AS n, CAST(0 AS DOUBLE) AS value
FROM population_classes AS p LEFT JOIN classes AS c ON c.class_id = p.class_id
WHERE c.class_id IS NULL AND p.n > 0
