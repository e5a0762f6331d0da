-- ambiguity: combinations of leaves that a row stands for, all of them if suppressed.  Nergiz and Clifton 2007.
-- reads:   classes(class_id, suppressed), class_cells(class_id, leaves), domain(leaves)
-- params:
-- returns: class_id, value
WITH whole AS (SELECT exp(sum(ln(CAST(leaves AS DOUBLE)))) AS leaves FROM domain),
boxes AS (
    SELECT class_id, exp(sum(ln(CAST(leaves AS DOUBLE)))) AS covered FROM class_cells GROUP BY class_id
)
SELECT c.class_id, CASE WHEN c.suppressed THEN w.leaves ELSE b.covered END AS value
FROM classes AS c CROSS JOIN whole AS w LEFT JOIN boxes AS b ON b.class_id = c.class_id
