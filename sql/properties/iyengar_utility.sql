-- iyengar_utility: attributes minus the shares of their domains that the cells cover.  Iyengar 2002, Dewri et al. 2009.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, leaves), domain(attribute, leaves)
-- params:
-- returns: class_id, value
WITH width AS (
    SELECT count(*) AS attributes FROM domain
), covered AS (
    SELECT x.class_id, sum(CAST(x.leaves AS DOUBLE) / d.leaves) AS shares
    FROM class_cells AS x JOIN domain AS d ON d.attribute = x.attribute
    GROUP BY x.class_id
)
SELECT
    c.class_id,
    CASE WHEN c.suppressed THEN CAST(0 AS DOUBLE) ELSE w.attributes - v.shares END AS value
FROM classes AS c CROSS JOIN width AS w LEFT JOIN covered AS v ON v.class_id = c.class_id
