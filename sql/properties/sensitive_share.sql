-- sensitive_share: share of the class with the row's own value, 0 for suppressed rows.  Machanavajjhala et al. 2006.
-- reads:   classes(class_id, n, suppressed), row_values(row_id, class_id, value)
-- params:
-- returns: row_id, value
WITH counted AS (
    SELECT class_id, value, count(*) AS n FROM row_values GROUP BY class_id, value
)
SELECT r.row_id, CASE WHEN c.suppressed THEN CAST(0 AS DOUBLE) ELSE CAST(k.n AS DOUBLE) / c.n END AS value
FROM row_values AS r
JOIN classes AS c ON c.class_id = r.class_id
JOIN counted AS k ON k.class_id = r.class_id AND k.value IS NOT DISTINCT FROM r.value
