-- squared_distance_error: distances of rows to the means of what their cells can stand for.  Domingo-Ferrer and Mateo-Sanz 2002.
-- reads:   classes(class_id, suppressed), class_cells(class_id, attribute, cell, lo, hi), cell_values(attribute, cell, number), column_values(attribute, number), tuples(tuple_id, class_id, n), tuple_values(tuple_id, attribute, number)
-- params:
-- returns: attribute, value, worst
WITH cells AS (
    SELECT attribute, cell, avg(number) AS mean FROM cell_values GROUP BY attribute, cell
), columns_ AS (
    SELECT attribute, avg(number) AS mean FROM column_values GROUP BY attribute
), steps AS (
    SELECT
        t.tuple_id,
        t.class_id,
        t.n,
        v.number - CASE WHEN c.suppressed THEN d.mean ELSE coalesce(m.mean, (x.lo + x.hi) / 2) END AS step,
        v.number - d.mean AS longest
    FROM tuples AS t
    JOIN classes AS c ON c.class_id = t.class_id
    JOIN tuple_values AS v ON v.tuple_id = t.tuple_id
    JOIN columns_ AS d ON d.attribute = v.attribute
    LEFT JOIN class_cells AS x ON x.class_id = t.class_id AND x.attribute = v.attribute
    LEFT JOIN cells AS m ON m.attribute = x.attribute AND m.cell IS NOT DISTINCT FROM x.cell
), distances AS (
    SELECT
        max(n) AS n,
        sqrt(coalesce(sum(step * step), 0)) AS distance,
        sqrt(coalesce(sum(longest * longest), 0)) AS longest
    FROM steps
    GROUP BY tuple_id, class_id
)
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(n * distance) AS value, sum(n * longest) AS worst FROM distances
