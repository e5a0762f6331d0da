-- basic_beta_likeness: classes where a sensitive value gains more than beta over the table.  Cao and Karras 2012.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, n)
-- params:  $beta, $sensitive
-- returns: class_id, n
WITH whole AS (
    SELECT value, n / CAST(sum(n) OVER () AS DOUBLE) AS p FROM domain_values WHERE attribute = $sensitive
), sizes AS (
    SELECT class_id, CAST(sum(n) AS DOUBLE) AS n FROM class_values WHERE attribute = $sensitive GROUP BY class_id
), measured AS (
    SELECT
        v.class_id,
        max(CASE WHEN v.n / s.n > coalesce(w.p, 0) * (1 + $beta) * (1 + 1e-12) THEN 1 ELSE 0 END) AS broken
    FROM class_values AS v
    JOIN sizes AS s ON s.class_id = v.class_id
    LEFT JOIN whole AS w ON w.value IS NOT DISTINCT FROM v.value
    WHERE v.attribute = $sensitive
    GROUP BY v.class_id
)
SELECT c.class_id, c.n
FROM classes AS c LEFT JOIN measured AS m ON m.class_id = c.class_id
WHERE NOT c.suppressed AND coalesce(m.broken, 1) = 1
