-- information_loss: widths of ordered cells over their domain's leaves, depths of the others.  Byun et al. 2007.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, level, leaves, lo, hi), domain(attribute, kind, height, leaves, lo, hi)
-- params:
-- returns: class_id, value
WITH whole AS (
    SELECT sum(CASE WHEN kind = 'ordered' THEN coalesce(hi / leaves - lo / leaves, 0) ELSE 1 END) AS lost FROM domain
), covered AS (
    SELECT
        x.class_id,
        sum(CASE
            WHEN d.kind = 'ordered' THEN coalesce(x.hi / d.leaves - x.lo / d.leaves, 0)
            WHEN x.level IS NOT NULL AND d.height > 0 THEN CAST(x.level AS DOUBLE) / d.height
            WHEN d.leaves > 1 THEN CAST(x.leaves - 1 AS DOUBLE) / (d.leaves - 1)
            ELSE 0
        END) AS lost
    FROM class_cells AS x JOIN domain AS d ON d.attribute = x.attribute
    GROUP BY x.class_id
)
SELECT c.class_id, CASE WHEN c.suppressed THEN w.lost ELSE v.lost END AS value
FROM classes AS c CROSS JOIN whole AS w LEFT JOIN covered AS v ON v.class_id = c.class_id
