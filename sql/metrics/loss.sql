-- loss: share of the domain that cells stand for, normalised by the untouched table.  Iyengar 2002, ARX.
-- reads:   classes(n, suppressed), cell_rows(attribute, leaves, n), domain(attribute, leaves, weight)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT attribute, sum(CAST(n AS DOUBLE) * leaves) AS covered FROM cell_rows GROUP BY attribute
), parts AS (
    SELECT
        d.attribute,
        d.weight,
        CASE WHEN d.leaves > 1 THEN
            (coalesce(k.covered, 0) / d.leaves + t.suppressed - t.n / d.leaves) / (t.n - t.n / d.leaves)
        ELSE 0 END AS value,
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
