-- height: the sum of the levels of published cells, mean over rows.  Samarati and Sweeney 1998, ARX.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, attribute, level), domain(attribute, height)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(CASE WHEN suppressed THEN 0 ELSE n END) AS DOUBLE) AS published FROM classes
), kept AS (
    SELECT x.attribute, sum(CAST(c.n AS DOUBLE) * x.level) AS climbed
    FROM classes AS c JOIN class_cells AS x ON x.class_id = c.class_id
    WHERE NOT c.suppressed
    GROUP BY x.attribute
), parts AS (
    SELECT
        d.attribute,
        CASE
            WHEN t.published > 0 THEN k.climbed / t.published
            WHEN t.published = 0 THEN CAST(d.height AS DOUBLE)
        END AS value,
        CAST(d.height AS DOUBLE) AS worst
    FROM domain AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
    WHERE d.height IS NOT NULL
)
SELECT attribute, value, worst FROM parts
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(value) AS value, sum(worst) AS worst FROM parts HAVING count(*) > 0
