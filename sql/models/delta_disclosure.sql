-- delta_disclosure: the largest abs(ln(q / p)) of a sensitive value of each class; none for one that the table lacks.  Brickell, Shmatikov 2008.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, n)
-- params:  $sensitive
-- returns: class_id, n, value
WITH whole AS (
    SELECT value, n / CAST(sum(n) OVER () AS DOUBLE) AS p FROM domain_values WHERE attribute = $sensitive AND n > 0
), sizes AS (
    SELECT class_id, CAST(sum(n) AS DOUBLE) AS n FROM class_values WHERE attribute = $sensitive GROUP BY class_id
), measured AS (
    SELECT v.class_id, CASE WHEN count(*) = count(w.p) THEN max(abs(ln(v.n / s.n / w.p))) END AS distance
    FROM class_values AS v
    JOIN sizes AS s ON s.class_id = v.class_id
    LEFT JOIN whole AS w ON w.value IS NOT DISTINCT FROM v.value
    WHERE v.attribute = $sensitive
    GROUP BY v.class_id
)
SELECT c.class_id, c.n, m.distance AS value
FROM classes AS c LEFT JOIN measured AS m ON m.class_id = c.class_id
WHERE NOT c.suppressed
