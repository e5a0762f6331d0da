-- information_loss: widths of ordered cells over their domain's leaves, depths of the others, summed.  Byun et al. 2007.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, level, leaves, lo, hi), domain(attribute, kind, height, leaves, lo, hi)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT
        x.attribute,
        sum(c.n * CASE
            WHEN d.kind = 'ordered' THEN coalesce(x.hi / d.leaves - x.lo / d.leaves, 0)
            WHEN x.level IS NOT NULL AND d.height > 0 THEN CAST(x.level AS DOUBLE) / d.height
            WHEN d.leaves > 1 THEN CAST(x.leaves - 1 AS DOUBLE) / (d.leaves - 1)
            ELSE 0
        END) AS lost
    FROM classes AS c
    JOIN class_cells AS x ON x.class_id = c.class_id
    JOIN domain AS d ON d.attribute = x.attribute
    WHERE NOT c.suppressed
    GROUP BY x.attribute
), parts AS (
    SELECT
        d.attribute,
        coalesce(k.lost, 0)
            + t.suppressed * CASE WHEN d.kind = 'ordered' THEN coalesce(d.hi / d.leaves - d.lo / d.leaves, 0) ELSE 1 END AS value,
        t.n * CASE WHEN d.kind = 'ordered' THEN coalesce(d.hi / d.leaves - d.lo / d.leaves, 0) ELSE 1 END AS worst
    FROM domain AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
)
SELECT attribute, value, worst FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(value) AS value, sum(worst) AS worst FROM parts
