-- homogeneity: rows in classes with one sensitive value, beside classes drawn at random.  Machanavajjhala et al. 2006.
-- reads:   class_values(class_id, attribute, value, n)
-- params:
-- returns: attribute, rows_seen, success, base_rate
WITH per_class AS (
    SELECT class_id, attribute, sum(n) AS n, count(*) AS distinct_values
    FROM class_values
    GROUP BY class_id, attribute
), sizes AS (
    SELECT attribute, n, count(*) AS classes, sum(CASE WHEN distinct_values = 1 THEN n ELSE 0 END) AS disclosed
    FROM per_class
    GROUP BY attribute, n
), totals AS (
    SELECT attribute, CAST(sum(n) AS DOUBLE) AS n FROM class_values GROUP BY attribute
), value_counts AS (
    SELECT attribute, value, CAST(sum(n) AS DOUBLE) AS n FROM class_values GROUP BY attribute, value
), shares AS (
    SELECT v.attribute, v.n / t.n AS share, count(*) AS alike
    FROM value_counts AS v JOIN totals AS t ON t.attribute = v.attribute
    GROUP BY v.attribute, v.n / t.n
), chances AS (
    SELECT s.attribute, sum(s.n * s.classes * p.alike * power(p.share, s.n)) AS expected
    FROM sizes AS s JOIN shares AS p ON p.attribute = s.attribute
    GROUP BY s.attribute
), found AS (
    SELECT attribute, sum(disclosed) AS disclosed FROM sizes GROUP BY attribute
)
SELECT t.attribute, t.n AS rows_seen, f.disclosed / t.n AS success, c.expected / t.n AS base_rate
FROM totals AS t
JOIN found AS f ON f.attribute = t.attribute
JOIN chances AS c ON c.attribute = t.attribute
ORDER BY t.attribute
