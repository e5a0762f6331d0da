-- sse: squared distances of rows to the means of their classes, in variances of the columns.  Domingo-Ferrer and Mateo-Sanz 2002.
-- reads:   classes(class_id, suppressed), domain(attribute, kind, lo, hi), tuples(tuple_id, class_id, n), tuple_values(tuple_id, attribute, number)
-- params:
-- returns: attribute, value, worst
WITH scaled AS (
    SELECT t.class_id, c.suppressed, d.attribute, CAST(t.n AS DOUBLE) AS n, (v.number / 2 - d.lo / 2) / (d.hi / 2 - d.lo / 2) AS x
    FROM tuples AS t
    JOIN classes AS c ON c.class_id = t.class_id
    JOIN tuple_values AS v ON v.tuple_id = t.tuple_id
    JOIN domain AS d ON d.attribute = v.attribute
    WHERE d.kind = 'ordered' AND d.hi / 2 > d.lo / 2 AND v.number IS NOT NULL
), centres AS (
    SELECT class_id, attribute, sum(n * x) / sum(n) AS mean FROM scaled GROUP BY class_id, attribute
), columns_ AS (
    SELECT attribute, sum(n * x) / sum(n) AS mean FROM scaled GROUP BY attribute
), steps AS (
    SELECT s.attribute, s.n, s.x - CASE WHEN s.suppressed THEN w.mean ELSE m.mean END AS step, s.x - w.mean AS longest
    FROM scaled AS s
    JOIN columns_ AS w ON w.attribute = s.attribute
    JOIN centres AS m ON m.class_id = s.class_id AND m.attribute = s.attribute
), sums AS (
    SELECT attribute, sum(n) AS n, sum(n * step * step) AS sse, sum(n * longest * longest) AS sst
    FROM steps
    GROUP BY attribute
), parts AS (
    SELECT
        d.attribute,
        CASE WHEN d.kind = 'ordered' AND d.hi / 2 <= d.lo / 2 THEN 0 ELSE s.n * least(s.sse / s.sst, 1) END AS sse,
        CASE WHEN d.kind = 'ordered' AND d.hi / 2 <= d.lo / 2 THEN 0 ELSE s.n END AS sst
    FROM domain AS d LEFT JOIN sums AS s ON s.attribute = d.attribute
)
SELECT attribute, sse AS value, sst AS worst FROM parts WHERE sse IS NOT NULL
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, sum(sse) AS value, sum(sst) AS worst FROM parts
