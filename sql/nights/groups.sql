-- groups: persons whom an observer of two releases can tell from all others, by their class before and after, or by their absence (NULL).  Persons with several rows: a pair that each release shows by itself is left out.
-- reads:   night_before(person, class_id), night_after(person, class_id)
-- returns: class_before, class_after, n
WITH pairs AS (
    SELECT COALESCE(b.person, a.person) AS person, b.class_id AS class_before, a.class_id AS class_after
    FROM night_before AS b
    FULL OUTER JOIN night_after AS a ON a.person = b.person
),
told AS (
    SELECT
        p.class_before,
        p.class_after,
        CASE WHEN p.class_before = p.class_after OR x.person IS NULL OR y.person IS NULL THEN 1 ELSE 0 END AS changed
    FROM pairs AS p
    LEFT JOIN night_before AS x ON x.person = p.person AND x.class_id = p.class_after
    LEFT JOIN night_after AS y ON y.person = p.person AND y.class_id = p.class_before
)
SELECT class_before, class_after, COUNT(*) AS n
FROM told
GROUP BY class_before, class_after
HAVING SUM(changed) > 0
