-- granularity: share of the domain that the cells could be besides their values, summed.  Iyengar 2002.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, leaves), domain(attribute, leaves)
-- params:
-- returns: class_id, value
WITH whole AS (
    SELECT sum(CAST(leaves - 1 AS DOUBLE) / leaves) AS lost FROM domain
), covered AS (
    SELECT x.class_id, sum(CAST(x.leaves - 1 AS DOUBLE) / d.leaves) AS lost
    FROM class_cells AS x JOIN domain AS d ON d.attribute = x.attribute
    GROUP BY x.class_id
)
SELECT c.class_id, CASE WHEN c.suppressed THEN w.lost ELSE v.lost END AS value
FROM classes AS c CROSS JOIN whole AS w LEFT JOIN covered AS v ON v.class_id = c.class_id
