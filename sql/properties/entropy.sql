-- entropy: bits that are missing to know the original values of a row from its cells.  Gionis and Tassa 2009.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, cell), cell_values(attribute, cell, n), column_values(attribute, n)
-- params:
-- returns: class_id, value
WITH cells AS (
    SELECT attribute, cell, (ln(CAST(sum(n) AS DOUBLE)) - sum(n * ln(CAST(n AS DOUBLE))) / sum(n)) / ln(2) AS bits
    FROM cell_values
    GROUP BY attribute, cell
), columns_ AS (
    SELECT attribute, (ln(CAST(sum(n) AS DOUBLE)) - sum(n * ln(CAST(n AS DOUBLE))) / sum(n)) / ln(2) AS bits
    FROM column_values
    GROUP BY attribute
), whole AS (SELECT sum(bits) AS bits FROM columns_),
kept AS (
    SELECT x.class_id, sum(b.bits) AS bits
    FROM class_cells AS x JOIN cells AS b ON b.attribute = x.attribute AND b.cell IS NOT DISTINCT FROM x.cell
    GROUP BY x.class_id
)
SELECT c.class_id, CASE WHEN c.suppressed THEN w.bits ELSE k.bits END AS value
FROM classes AS c CROSS JOIN whole AS w LEFT JOIN kept AS k ON k.class_id = c.class_id
