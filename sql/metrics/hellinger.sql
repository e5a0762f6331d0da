-- hellinger: distance between the texts of a column before and after, median over columns.  Hellinger 1909, El Emam et al. 2020.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, cell), column_values(attribute, value, n)
-- params:
-- returns: attribute, value
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), texts AS (
    SELECT attribute, value, n AS p, 0 AS q FROM column_values
    UNION ALL
    SELECT x.attribute, x.cell AS value, 0 AS p, c.n AS q
    FROM classes AS c JOIN class_cells AS x ON x.class_id = c.class_id
    WHERE NOT c.suppressed
), shares AS (
    SELECT s.attribute, s.value, sum(s.p) / max(t.n) AS p, sum(s.q) / max(t.n) AS q
    FROM texts AS s CROSS JOIN total AS t
    GROUP BY s.attribute, s.value
), parts AS (
    SELECT
        s.attribute,
        sqrt((sum((sqrt(s.p) - sqrt(s.q)) * (sqrt(s.p) - sqrt(s.q))) + max(t.suppressed / t.n)) / 2) AS value
    FROM shares AS s CROSS JOIN total AS t
    GROUP BY s.attribute
)
SELECT attribute, value FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS value FROM parts
