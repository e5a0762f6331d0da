-- ncp: weighted width of the cells as a share of their columns, 0 for one value and 1 suppressed.  Xu et al. 2006.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, leaves, lo, hi), domain(attribute, kind, leaves, lo, hi, weight, labels)
-- params:
-- returns: class_id, value
WITH total AS (
    SELECT sum(weight) AS weight, sum(CASE WHEN leaves > 1 THEN weight ELSE 0 END) AS losable FROM domain
), wide AS (
    SELECT
        x.class_id,
        sum(d.weight * CASE
            WHEN d.leaves <= 1 OR x.leaves <= 1 THEN 0
            WHEN d.kind = 'ordered' AND NOT d.labels AND d.hi > d.lo AND x.lo IS NOT NULL
                THEN (x.hi / 2 - x.lo / 2) / (d.hi / 2 - d.lo / 2)
            ELSE CAST(x.leaves AS DOUBLE) / d.leaves
        END) AS penalty
    FROM class_cells AS x JOIN domain AS d ON d.attribute = x.attribute
    GROUP BY x.class_id
)
SELECT c.class_id, (CASE WHEN c.suppressed THEN t.losable ELSE v.penalty END) / t.weight AS value
FROM classes AS c CROSS JOIN total AS t LEFT JOIN wide AS v ON v.class_id = c.class_id
