-- precision: one minus the weighted mean of level / height, of lost leaves where there is no level.  Sweeney 2002.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, level, leaves), domain(attribute, height, leaves, weight)
-- params:
-- returns: class_id, value
WITH total AS (
    SELECT sum(weight) AS weight FROM domain
), climbed AS (
    SELECT
        x.class_id,
        sum(d.weight * CASE
            WHEN x.level IS NOT NULL AND d.height > 0 THEN CAST(x.level AS DOUBLE) / d.height
            WHEN d.leaves > 1 THEN CAST(x.leaves - 1 AS DOUBLE) / (d.leaves - 1)
            ELSE 0
        END) AS lost
    FROM class_cells AS x JOIN domain AS d ON d.attribute = x.attribute
    GROUP BY x.class_id
)
SELECT c.class_id, 1 - (CASE WHEN c.suppressed THEN t.weight ELSE v.lost END) / t.weight AS value
FROM classes AS c CROSS JOIN total AS t LEFT JOIN climbed AS v ON v.class_id = c.class_id
