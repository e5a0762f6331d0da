-- diameter: in how many columns the published class that differs most from a given one differs from it.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, cell)
-- params:  $class_id
-- returns: class_id, value
WITH differences AS (
    SELECT o.class_id, sum(CASE WHEN o.cell IS DISTINCT FROM s.cell THEN 1 ELSE 0 END) AS n
    FROM class_cells AS s
    JOIN class_cells AS o ON o.attribute = s.attribute
    JOIN classes AS c ON c.class_id = o.class_id
    WHERE s.class_id = $class_id AND NOT c.suppressed
    GROUP BY o.class_id
)
SELECT class_id, CAST(n AS DOUBLE) AS value FROM differences ORDER BY n DESC, class_id LIMIT 1
