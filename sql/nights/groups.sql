-- groups: persons whom an observer of two releases can distinguish from all others: by the class they stayed in, by those they left and came to, or by one of these alone (the other is NULL).
-- reads:   night_before(person, class_id), night_after(person, class_id)
-- returns: class_before, class_after, n
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
    SELECT m.class_before, m.class_after FROM matched AS m WHERE m.class_before = m.class_after
    UNION ALL
    SELECT l.class_before, g.class_after FROM lost AS l FULL OUTER JOIN gained AS g ON g.person = l.person
)
SELECT p.class_before, p.class_after, COUNT(*) AS n
FROM pairs AS p
GROUP BY p.class_before, p.class_after
