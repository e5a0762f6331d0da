-- skewness: how frequent their own value is in people's classes, on average, beside classes drawn at random.  Li et al. 2007.
-- reads:   class_values(class_id, attribute, value, n)
-- params:
-- returns: attribute, rows_seen, success, base_rate
WITH per_class AS (
    SELECT class_id, attribute, CAST(sum(n) AS DOUBLE) AS n, sum(CAST(n AS DOUBLE) * n) AS squares
    FROM class_values
    GROUP BY class_id, attribute
), found AS (
    SELECT attribute, sum(n) AS n, count(*) AS classes, sum(squares / n) AS own
    FROM per_class
    GROUP BY attribute
), value_counts AS (
    SELECT attribute, value, CAST(sum(n) AS DOUBLE) AS n FROM class_values GROUP BY attribute, value
), alike AS (
    SELECT attribute, sum(n * (n - 1)) AS pairs FROM value_counts GROUP BY attribute
), chances AS (
    SELECT f.attribute, CASE WHEN f.n > 1 THEN a.pairs / (f.n * (f.n - 1)) ELSE 1 END AS chance
    FROM found AS f JOIN alike AS a ON a.attribute = f.attribute
)
SELECT
    f.attribute,
    f.n AS rows_seen,
    f.own / f.n AS success,
    (f.classes + (f.n - f.classes) * c.chance) / f.n AS base_rate
FROM found AS f JOIN chances AS c ON c.attribute = f.attribute
ORDER BY f.attribute
