-- non_uniform_entropy: bits from published cells back to values, and from nothing back to the cells of suppressed rows.  ARX.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, cell), cell_values(attribute, cell, value, n), column_values(attribute, value, n), tuples(tuple_id, class_id, n), tuple_values(tuple_id, attribute, value)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), cells AS (
    SELECT attribute, cell, CAST(sum(n) AS DOUBLE) AS n FROM cell_values GROUP BY attribute, cell
), kept AS (
    SELECT v.attribute, x.cell, v.value, CAST(sum(t.n) AS DOUBLE) AS n
    FROM tuples AS t
    JOIN classes AS c ON c.class_id = t.class_id
    JOIN tuple_values AS v ON v.tuple_id = t.tuple_id
    JOIN class_cells AS x ON x.class_id = t.class_id AND x.attribute = v.attribute
    WHERE NOT c.suppressed
    GROUP BY v.attribute, x.cell, v.value
), published AS (
    SELECT k.attribute, -sum(k.n * ln(o.n / g.n)) / ln(2) AS bits
    FROM kept AS k
    JOIN column_values AS o ON o.attribute = k.attribute AND o.value IS NOT DISTINCT FROM k.value
    JOIN cells AS g ON g.attribute = k.attribute AND g.cell IS NOT DISTINCT FROM k.cell
    GROUP BY k.attribute
), choices AS (
    SELECT attribute, value, count(*) AS n, min(cell) AS cell FROM cell_values GROUP BY attribute, value
), recoded AS (
    SELECT c.attribute, c.value, c.cell
    FROM choices AS c
    JOIN (SELECT attribute FROM choices GROUP BY attribute HAVING max(n) = 1) AS f ON f.attribute = c.attribute
), lost AS (
    SELECT v.attribute, v.value, CAST(sum(t.n) AS DOUBLE) AS n
    FROM tuples AS t
    JOIN classes AS c ON c.class_id = t.class_id
    JOIN tuple_values AS v ON v.tuple_id = t.tuple_id
    WHERE c.suppressed
    GROUP BY v.attribute, v.value
), labelled AS (
    SELECT
        l.attribute,
        l.n,
        r.attribute IS NOT NULL AS known,
        CASE WHEN r.attribute IS NULL THEN l.value ELSE r.cell END AS cell,
        CASE WHEN r.attribute IS NULL THEN 0 ELSE -l.n * ln(o.n / g.n) / ln(2) END AS bits
    FROM lost AS l
    JOIN column_values AS o ON o.attribute = l.attribute AND o.value IS NOT DISTINCT FROM l.value
    LEFT JOIN recoded AS r ON r.attribute = l.attribute AND r.value IS NOT DISTINCT FROM l.value
    LEFT JOIN cells AS g ON g.attribute = r.attribute AND g.cell IS NOT DISTINCT FROM r.cell
), gone AS (
    SELECT attribute, known, cell, sum(n) AS n, sum(bits) AS bits FROM labelled GROUP BY attribute, known, cell
), hidden AS (
    SELECT g.attribute, sum(g.bits - g.n * ln(g.n / t.suppressed) / ln(2)) AS bits
    FROM gone AS g CROSS JOIN total AS t
    GROUP BY g.attribute
), columns_ AS (
    SELECT attribute, (ln(CAST(sum(n) AS DOUBLE)) - sum(n * ln(CAST(n AS DOUBLE))) / sum(n)) / ln(2) AS bits
    FROM column_values
    GROUP BY attribute
), parts AS (
    SELECT
        d.attribute,
        CASE WHEN t.n > 0 THEN coalesce(p.bits, 0) + coalesce(h.bits, 0) END AS value,
        t.n * d.bits AS worst
    FROM columns_ AS d
    CROSS JOIN total AS t
    LEFT JOIN published AS p ON p.attribute = d.attribute
    LEFT JOIN hidden AS h ON h.attribute = d.attribute
)
SELECT attribute, value, worst FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(value) AS value, sum(worst) AS worst FROM parts
