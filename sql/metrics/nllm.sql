-- nllm: leaves that a cell lost of those it can lose, mean over cells.  Kifer and Gehrke 2006.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, leaves), domain(attribute, leaves, weight)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT
        x.attribute,
        sum(c.n * CAST(x.leaves - 1 AS DOUBLE) / nullif(d.leaves - 1, 0)) AS lost
    FROM classes AS c
    JOIN class_cells AS x ON x.class_id = c.class_id
    JOIN domain AS d ON d.attribute = x.attribute
    WHERE NOT c.suppressed
    GROUP BY x.attribute
), parts AS (
    SELECT
        d.attribute,
        d.weight,
        CASE WHEN d.leaves > 1 THEN coalesce(k.lost, 0) + t.suppressed ELSE 0 END / t.n AS value,
        CASE WHEN d.leaves > 1 THEN 1.0 ELSE 0.0 END AS worst
    FROM domain AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
)
SELECT attribute, value, worst FROM parts
UNION ALL
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    sum(value * weight) / sum(weight) AS value,
    sum(worst * weight) / sum(weight) AS worst
FROM parts
