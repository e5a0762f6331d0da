-- t_closeness: the largest equal distance of a class from the table.  Li et al. 2007.
-- reads:   classes(class_id, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, n)
-- params:
-- returns: attribute, parameter, value
WITH whole AS (
    SELECT attribute, value, n / CAST(sum(n) OVER (PARTITION BY attribute) AS DOUBLE) AS p FROM domain_values
), sizes AS (
    SELECT v.attribute, v.class_id, CAST(sum(v.n) AS DOUBLE) AS n
    FROM class_values AS v JOIN classes AS c ON c.class_id = v.class_id
    WHERE NOT c.suppressed
    GROUP BY v.attribute, v.class_id
), measured AS (
    SELECT v.attribute, (1 + sum(abs(v.n / s.n - coalesce(w.p, 0)) - coalesce(w.p, 0))) / 2 AS distance
    FROM class_values AS v
    JOIN sizes AS s ON s.attribute = v.attribute AND s.class_id = v.class_id
    LEFT JOIN whole AS w ON w.attribute = v.attribute AND w.value IS NOT DISTINCT FROM v.value
    GROUP BY v.attribute, v.class_id
)
SELECT attribute, 't' AS parameter, least(greatest(max(distance), 0), 1) AS value FROM measured GROUP BY attribute
