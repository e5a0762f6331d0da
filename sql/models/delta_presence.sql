-- delta_presence: classes of the population whose share in the data is not within the bounds.  Nergiz et al. 2007.
-- reads:   classes(class_id, n, suppressed), population_classes(class_id, n)
-- params:  $minimum, $maximum
-- returns: class_id, n
SELECT c.class_id, c.n
FROM classes AS c LEFT JOIN population_classes AS p ON p.class_id = c.class_id
WHERE NOT c.suppressed
    AND (
        c.n < $minimum * coalesce(p.n, 0) * (1 - 1e-12)
        OR c.n > $maximum * coalesce(p.n, 0) * (1 + 1e-12)
    )
UNION ALL
-- Members of the population of whose class nobody is in the data.
SELECT p.class_id, CAST(0 AS BIGINT) AS n
FROM population_classes AS p LEFT JOIN classes AS c ON c.class_id = p.class_id
WHERE c.class_id IS NULL AND p.n > 0 AND $minimum > 0
