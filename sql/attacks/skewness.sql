-- skewness: how frequent their own value is in people's classes, on average, beside one class of all rows.  Li et al. 2007.
-- reads:   class_values(class_id, attribute, value, n)
-- params:  $k
-- returns: attribute, rows_seen, success, base_rate, allowed
WITH per_class AS (
    SELECT attribute, CAST(sum(n) AS DOUBLE) AS n, sum(CAST(n AS DOUBLE) * n) AS squares
    FROM class_values
    GROUP BY class_id, attribute
), found AS (
    SELECT attribute, sum(n) AS n, sum(squares / n) AS own FROM per_class GROUP BY attribute
), value_counts AS (
    SELECT attribute, value, CAST(sum(n) AS DOUBLE) AS n FROM class_values GROUP BY attribute, value
), alike AS (
    SELECT v.attribute, sum(v.n / f.n * v.n / f.n) AS drawn, sum(v.n / f.n * (v.n - 1)) AS others
    FROM value_counts AS v JOIN found AS f ON f.attribute = v.attribute
    GROUP BY v.attribute
)
SELECT
    f.attribute,
    f.n AS rows_seen,
    f.own / f.n AS success,
    a.drawn AS base_rate,
    (1 + (CAST($k AS DOUBLE) - 1) * CASE WHEN f.n > 1 THEN a.others / (f.n - 1) ELSE 1 END) / CAST($k AS DOUBLE) AS allowed
FROM found AS f JOIN alike AS a ON a.attribute = f.attribute
ORDER BY f.attribute
