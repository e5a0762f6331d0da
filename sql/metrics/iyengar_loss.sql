-- iyengar_loss: share of the domain that a cell stands for, summed over a row's cells, mean over rows.  Iyengar 2002.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, leaves), domain(attribute, leaves)
-- params:
-- returns: attribute, value, worst, best
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT
        x.attribute,
        sum(c.n * CAST(x.leaves AS DOUBLE) / d.leaves) AS lost
    FROM classes AS c
    JOIN class_cells AS x ON x.class_id = c.class_id
    JOIN domain AS d ON d.attribute = x.attribute
    WHERE NOT c.suppressed
    GROUP BY x.attribute
), parts AS (
    SELECT
        d.attribute,
        (coalesce(k.lost, 0) + t.suppressed) / t.n AS value,
        CAST(1 AS DOUBLE) AS worst,
        CAST(1 AS DOUBLE) / d.leaves AS best
    FROM domain AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
)
SELECT attribute, value, worst, best FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(value) AS value, sum(worst) AS worst, sum(best) AS best FROM parts
