-- companions: persons who wait with those who left a class for good, where these are fewer than k: up to k together, drawn by a salt from the largest group.
-- reads:   night_before(person, class_id), night_after(person, class_id), night_groups(class_before, class_after, n)
-- params:  $k, $salt
-- returns: person
WITH others AS (
    SELECT b.class_id, a.person, s.n AS size, d.n AS departed
    FROM night_groups AS d
    JOIN night_before AS b ON b.class_id = d.class_before
    JOIN night_after AS a ON a.person = b.person
    JOIN night_groups AS s ON s.class_before = b.class_id AND s.class_after = a.class_id
    WHERE d.class_after IS NULL AND d.n < $k
),
ranked AS (
    SELECT
        o.person,
        o.departed,
        ROW_NUMBER() OVER (
            PARTITION BY o.class_id ORDER BY o.size DESC, MD5(CONCAT(HEX(o.person), $salt)), o.person
        ) AS place
    FROM others AS o
)
SELECT DISTINCT r.person
FROM ranked AS r
WHERE r.place + r.departed <= $k
