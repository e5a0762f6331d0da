-- enhanced_beta_likeness: the largest gain of a sensitive value of each class; none where one gains more than -ln p.  Cao and Karras 2012.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, n)
-- params:  $sensitive
-- returns: class_id, n, value
WITH whole AS (
    SELECT value, n / CAST(sum(n) OVER () AS DOUBLE) AS p FROM domain_values WHERE attribute = $sensitive AND n > 0
), sizes AS (
    SELECT class_id, CAST(sum(n) AS DOUBLE) AS n FROM class_values WHERE attribute = $sensitive GROUP BY class_id
), gains AS (
    SELECT v.class_id, v.n / s.n / w.p AS gain, (1 - ln(w.p)) * (1 + 1e-12) AS allowed
    FROM class_values AS v
    JOIN sizes AS s ON s.class_id = v.class_id
    LEFT JOIN whole AS w ON w.value IS NOT DISTINCT FROM v.value
    WHERE v.attribute = $sensitive
), measured AS (
    SELECT class_id, CASE WHEN count(*) = count(CASE WHEN gain <= allowed THEN 1 END) THEN max(gain) END AS gain
    FROM gains
    GROUP BY class_id
)
SELECT c.class_id, c.n, m.gain AS value
FROM classes AS c LEFT JOIN measured AS m ON m.class_id = c.class_id
WHERE NOT c.suppressed
