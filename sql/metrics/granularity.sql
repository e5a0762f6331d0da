-- granularity: share of the domain that every cell could be besides its value.  Iyengar 2002.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, leaves), domain(attribute, leaves)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT
        x.attribute,
        sum(c.n * CAST(x.leaves - 1 AS DOUBLE) / d.leaves) AS lost
    FROM classes AS c
    JOIN class_cells AS x ON x.class_id = c.class_id
    JOIN domain AS d ON d.attribute = x.attribute
    WHERE NOT c.suppressed
    GROUP BY x.attribute
), parts AS (
    SELECT
        d.attribute,
        coalesce(k.lost, 0) + t.suppressed * (d.leaves - 1) / d.leaves AS value,
        t.n * (d.leaves - 1) / d.leaves AS worst
    FROM domain AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
)
SELECT attribute, value, worst FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(value) AS value, sum(worst) AS worst FROM parts
