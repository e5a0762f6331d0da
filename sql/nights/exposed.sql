-- exposed: persons in groups of fewer than k; "both" for those who stayed or moved, "new" and "departed" for the others.
-- reads:   night_before(person, class_id), night_after(person, class_id), night_groups(class_before, class_after, n)
-- params:  $k
-- returns: person, kind
WITH matched AS (
    SELECT
        COALESCE(b.person, a.person) AS person,
        b.class_id AS class_before,
        a.class_id AS class_after
    FROM night_before AS b
    FULL OUTER JOIN night_after AS a ON a.person = b.person AND a.class_id = b.class_id
),
lost AS (
    SELECT m.person, m.class_before FROM matched AS m WHERE m.class_after IS NULL
),
gained AS (
    SELECT m.person, m.class_after FROM matched AS m WHERE m.class_before IS NULL
),
pairs AS (
    SELECT m.person, m.class_before, m.class_after FROM matched AS m WHERE m.class_before = m.class_after
    UNION ALL
    SELECT COALESCE(l.person, g.person) AS person, l.class_before, g.class_after
    FROM lost AS l
    FULL OUTER JOIN gained AS g ON g.person = l.person
)
SELECT DISTINCT
    p.person,
    CASE WHEN p.class_before IS NULL THEN 'new' WHEN p.class_after IS NULL THEN 'departed' ELSE 'both' END AS kind
FROM pairs AS p
JOIN night_groups AS g
    ON p.class_before IS NOT DISTINCT FROM g.class_before AND p.class_after IS NOT DISTINCT FROM g.class_after
WHERE g.n < $k
