-- loss_geometric: loss, the geometric mean over attributes of one plus it, minus one.  Iyengar 2002, ARX.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, leaves), domain(attribute, leaves, weight)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT x.attribute, sum(CAST(c.n AS DOUBLE) * x.leaves) AS covered
    FROM classes AS c JOIN class_cells AS x ON x.class_id = c.class_id
    WHERE NOT c.suppressed
    GROUP BY x.attribute
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
    exp(sum(ln(1 + value) * weight) / sum(weight)) - 1 AS value,
    exp(sum(ln(1 + worst) * weight) / sum(weight)) - 1 AS worst
FROM parts
