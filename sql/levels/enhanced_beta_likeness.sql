-- enhanced_beta_likeness: the smallest beta above 0 that holds; none where one gains more than -ln p.  Cao and Karras 2012.
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
), gains AS (
    SELECT v.attribute, v.n / s.n / w.p AS gain, (1 - ln(w.p)) * (1 + 1e-12) AS allowed
    FROM class_values AS v
    JOIN sizes AS s ON s.attribute = v.attribute AND s.class_id = v.class_id
    LEFT JOIN whole AS w ON w.attribute = v.attribute AND w.value IS NOT DISTINCT FROM v.value
)
SELECT
    attribute,
    'beta' AS parameter,
    CASE WHEN count(*) = count(CASE WHEN gain <= allowed THEN 1 END) THEN greatest(max(gain) - 1, 1e-12) END AS value
FROM gains
GROUP BY attribute
