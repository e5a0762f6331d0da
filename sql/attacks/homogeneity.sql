-- homogeneity: rows in classes with one sensitive value, beside one class of all rows.  Machanavajjhala et al. 2006.
-- reads:   class_values(class_id, attribute, value, n)
-- params:  $k
-- returns: attribute, rows_seen, success, base_rate, allowed
WITH per_class AS (
    SELECT attribute, sum(n) AS n, count(*) AS distinct_values
    FROM class_values
    GROUP BY class_id, attribute
), found AS (
    SELECT
        attribute,
        CAST(sum(n) AS DOUBLE) AS n,
        CAST(sum(CASE WHEN distinct_values = 1 THEN n ELSE 0 END) AS DOUBLE) AS disclosed
    FROM per_class
    GROUP BY attribute
), value_counts AS (
    SELECT attribute, value, CAST(sum(n) AS DOUBLE) AS n FROM class_values GROUP BY attribute, value
), chances AS (
    SELECT
        v.attribute,
        CASE WHEN count(*) = 1 THEN 1.0 ELSE 0.0 END AS one_value,
        sum(power(v.n / f.n, CAST($k AS DOUBLE))) AS allowed
    FROM value_counts AS v JOIN found AS f ON f.attribute = v.attribute
    GROUP BY v.attribute
)
SELECT f.attribute, f.n AS rows_seen, f.disclosed / f.n AS success, c.one_value AS base_rate, c.allowed
FROM found AS f JOIN chances AS c ON c.attribute = f.attribute
ORDER BY f.attribute
