-- classification: share of rows that are suppressed or not of their class's most frequent label.  Iyengar 2002.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, n)
-- params:
-- returns: attribute, value
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), minorities AS (
    SELECT v.class_id, v.attribute, max(CASE WHEN c.suppressed THEN 0 ELSE 1 END) * (sum(v.n) - max(v.n)) AS n
    FROM classes AS c JOIN class_values AS v ON v.class_id = c.class_id
    GROUP BY v.class_id, v.attribute
), parts AS (
    SELECT m.attribute, (max(t.suppressed) + sum(m.n)) / max(t.n) AS value
    FROM minorities AS m CROSS JOIN total AS t
    GROUP BY m.attribute
), mean AS (SELECT avg(value) AS value FROM parts)
SELECT attribute, value FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, coalesce(m.value, t.suppressed / t.n) AS value
FROM total AS t CROSS JOIN mean AS m
