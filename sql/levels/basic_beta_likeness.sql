-- basic_beta_likeness: the smallest beta above 0 that holds; none for one that the table lacks.  Cao 2012.
-- reads:   classes(class_id, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, n)
-- params:
-- returns: attribute, parameter, value
WITH whole AS (
    SELECT attribute, value, n / CAST(sum(n) OVER (PARTITION BY attribute) AS DOUBLE) AS p
    FROM domain_values
    WHERE n > 0
), sizes AS (
    SELECT v.attribute, v.class_id, CAST(sum(v.n) AS DOUBLE) AS n
    FROM class_values AS v JOIN classes AS c ON c.class_id = v.class_id
    WHERE NOT c.suppressed
    GROUP BY v.attribute, v.class_id
)
SELECT
    v.attribute,
    'beta' AS parameter,
    CASE WHEN count(*) = count(w.p) THEN greatest(max(v.n / s.n / w.p) - 1, 1e-12) END AS value
FROM class_values AS v
JOIN sizes AS s ON s.attribute = v.attribute AND s.class_id = v.class_id
LEFT JOIN whole AS w ON w.attribute = v.attribute AND w.value IS NOT DISTINCT FROM v.value
GROUP BY v.attribute
