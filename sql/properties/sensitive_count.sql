-- sensitive_count: rows of the class with the row's own value, the suppressed rows being one class.  Dewri et al. 2009.
-- reads:   classes(class_id, suppressed), row_values(row_id, class_id, value)
-- params:
-- returns: row_id, value
WITH placed AS (
    SELECT r.row_id, CASE WHEN c.suppressed THEN -1 ELSE c.class_id END AS class_id, r.value
    FROM row_values AS r JOIN classes AS c ON c.class_id = r.class_id
), counted AS (
    SELECT class_id, value, count(*) AS n FROM placed GROUP BY class_id, value
)
SELECT p.row_id, CAST(k.n AS DOUBLE) AS value
FROM placed AS p JOIN counted AS k ON k.class_id = p.class_id AND k.value IS NOT DISTINCT FROM p.value
