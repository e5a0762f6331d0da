-- precision: one minus the mean of level / height, of lost leaves where there is no level.  Sweeney 2002.
-- reads:   classes(n, suppressed), cell_rows(attribute, level, leaves, n), domain(attribute, height, leaves, weight)
-- params:
-- returns: attribute, value
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT
        x.attribute,
        sum(x.n * CASE
            WHEN x.level IS NOT NULL AND d.height > 0 THEN CAST(x.level AS DOUBLE) / d.height
            WHEN d.leaves > 1 THEN CAST(x.leaves - 1 AS DOUBLE) / (d.leaves - 1)
            ELSE 0
        END) AS climbed
    FROM cell_rows AS x JOIN domain AS d ON d.attribute = x.attribute
    GROUP BY x.attribute
), parts AS (
    SELECT d.attribute, d.weight, 1 - (coalesce(k.climbed, 0) + t.suppressed) / t.n AS value
    FROM domain AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
)
SELECT attribute, value FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(value * weight) / sum(weight) AS value FROM parts
