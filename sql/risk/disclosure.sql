-- disclosure: classes that have one sensitive value, which is that of everybody in them.  Machanavajjhala et al. 2006.
-- reads:   class_values(class_id, attribute, n)
-- params:
-- returns: attribute, classes, rows, share
WITH per_class AS (
    SELECT attribute, sum(n) AS n, count(*) AS distinct_values
    FROM class_values
    GROUP BY class_id, attribute
)
SELECT
    attribute,
    sum(CASE WHEN distinct_values = 1 THEN 1 ELSE 0 END) AS classes,
    sum(CASE WHEN distinct_values = 1 THEN n ELSE 0 END) AS rows,
    CAST(sum(CASE WHEN distinct_values = 1 THEN n ELSE 0 END) AS DOUBLE) / sum(n) AS share
FROM per_class
GROUP BY attribute
ORDER BY attribute
