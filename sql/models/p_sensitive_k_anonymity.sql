-- p_sensitive_k_anonymity: the different sensitive values of each class; none for a class smaller than k.  Truta and Vinay 2006.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute)
-- params:  $k, $sensitive
-- returns: class_id, n, value
SELECT c.class_id, c.n, CASE WHEN c.n >= $k THEN coalesce(v.distinct_values, 0) END AS value
FROM classes AS c
LEFT JOIN (
    SELECT class_id, count(*) AS distinct_values FROM class_values WHERE attribute = $sensitive GROUP BY class_id
) AS v ON v.class_id = c.class_id
WHERE NOT c.suppressed
