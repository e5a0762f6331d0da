-- ncp: widths of intervals and leaves of labels as shares of their domains, summed.  Xu et al. 2006.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, leaves, lo, hi), domain(attribute, kind, leaves, lo, hi, weight, labels)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT
        x.attribute,
        sum(c.n * CASE
            WHEN d.leaves <= 1 OR x.leaves <= 1 THEN 0
            WHEN d.kind = 'ordered' AND NOT d.labels AND d.hi > d.lo AND x.lo IS NOT NULL
                THEN (x.hi / 2 - x.lo / 2) / (d.hi / 2 - d.lo / 2)
            ELSE CAST(x.leaves AS DOUBLE) / d.leaves
        END) AS lost
    FROM classes AS c
    JOIN class_cells AS x ON x.class_id = c.class_id
    JOIN domain AS d ON d.attribute = x.attribute
    WHERE NOT c.suppressed
    GROUP BY x.attribute
), parts AS (
    SELECT
        d.attribute,
        d.weight * CASE WHEN d.leaves > 1 THEN coalesce(k.lost, 0) + t.suppressed ELSE t.n * 0 END AS value,
        d.weight * CASE WHEN d.leaves > 1 THEN t.n ELSE 0 END AS worst
    FROM domain AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
)
SELECT attribute, value, worst FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(value) AS value, sum(worst) AS worst FROM parts
