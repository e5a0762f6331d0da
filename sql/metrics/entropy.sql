-- entropy: bits that are missing to know the original value of every cell.  Gionis and Tassa 2009.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, cell), cell_values(attribute, cell, n), column_values(attribute, n)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), cells AS (
    SELECT
        attribute,
        cell,
        CASE WHEN count(*) > 1 THEN
            (ln(CAST(sum(n) AS DOUBLE)) - sum(n * ln(CAST(n AS DOUBLE))) / sum(n)) / ln(2)
        ELSE 0 END AS bits
    FROM cell_values
    GROUP BY attribute, cell
), columns_ AS (
    SELECT
        attribute,
        CASE WHEN count(*) > 1 THEN
            (ln(CAST(sum(n) AS DOUBLE)) - sum(n * ln(CAST(n AS DOUBLE))) / sum(n)) / ln(2)
        ELSE 0 END AS bits
    FROM column_values
    GROUP BY attribute
), kept AS (
    SELECT x.attribute, sum(c.n * b.bits) AS bits
    FROM classes AS c
    JOIN class_cells AS x ON x.class_id = c.class_id
    JOIN cells AS b ON b.attribute = x.attribute AND b.cell IS NOT DISTINCT FROM x.cell
    WHERE NOT c.suppressed
    GROUP BY x.attribute
), parts AS (
    SELECT d.attribute, coalesce(k.bits, 0) + t.suppressed * d.bits AS value, t.n * d.bits AS worst
    FROM columns_ AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
)
SELECT attribute, value, worst FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(value) AS value, sum(worst) AS worst FROM parts
