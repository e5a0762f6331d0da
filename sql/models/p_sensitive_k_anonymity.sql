-- p_sensitive_k_anonymity: classes smaller than k or with fewer than p different sensitive values.  Truta and Vinay 2006.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute)
-- params:  $p, $k, $sensitive
-- returns: class_id, n
SELECT c.class_id, c.n
FROM classes AS c
LEFT JOIN (
    SELECT class_id, count(*) AS distinct_values FROM class_values WHERE attribute = $sensitive GROUP BY class_id
) AS v ON v.class_id = c.class_id
WHERE NOT c.suppressed AND (c.n < $k OR coalesce(v.distinct_values, 0) < $p)
