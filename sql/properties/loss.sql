-- loss: weighted share of the domain that the cells stand for, 0 untouched and 1 suppressed.  Iyengar 2002, ARX.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, leaves), domain(attribute, leaves, weight)
-- params:
-- returns: class_id, value
WITH total AS (
    SELECT sum(weight) AS weight, sum(CASE WHEN leaves > 1 THEN weight ELSE 0 END) AS losable FROM domain
), covered AS (
    SELECT
        x.class_id,
        sum(CASE WHEN d.leaves > 1 THEN d.weight * CAST(x.leaves - 1 AS DOUBLE) / (d.leaves - 1) ELSE 0 END) AS lost
    FROM class_cells AS x JOIN domain AS d ON d.attribute = x.attribute
    GROUP BY x.class_id
)
SELECT c.class_id, (CASE WHEN c.suppressed THEN t.losable ELSE v.lost END) / t.weight AS value
FROM classes AS c CROSS JOIN total AS t LEFT JOIN covered AS v ON v.class_id = c.class_id
