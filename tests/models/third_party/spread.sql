-- spread: how much the share of a sensitive value exceeds that in the whole table, at most, in each class.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, n)
-- params:  $sensitive
-- returns: class_id, n, value
WITH whole AS (
    SELECT value, n / CAST(sum(n) OVER () AS DOUBLE) AS p FROM domain_values WHERE attribute = $sensitive
), shares AS (
    SELECT class_id, value, n / CAST(sum(n) OVER (PARTITION BY class_id) AS DOUBLE) AS q
    FROM class_values
    WHERE attribute = $sensitive
)
SELECT c.class_id, c.n, max(s.q - w.p) AS value
FROM classes AS c
LEFT JOIN shares AS s ON s.class_id = c.class_id
LEFT JOIN whole AS w ON w.value IS NOT DISTINCT FROM s.value
WHERE NOT c.suppressed
GROUP BY c.class_id, c.n
