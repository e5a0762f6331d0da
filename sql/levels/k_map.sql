-- k_map: the least number of members of the population in a class.  Sweeney 2001.
-- reads:   classes(class_id, suppressed), population_classes(class_id, n)
-- params:
-- returns: attribute, parameter, value
SELECT CAST(NULL AS VARCHAR) AS attribute, 'k' AS parameter, CAST(min(coalesce(p.n, 0)) AS DOUBLE) AS value
FROM classes AS c LEFT JOIN population_classes AS p ON p.class_id = c.class_id
WHERE NOT c.suppressed
