-- alpha_k_anonymity: the largest share of a sensitive value in each class; none for a class smaller than k.  Wong et al. 2006.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, n)
-- params:  $k, $sensitive
-- returns: class_id, n, value
SELECT c.class_id, c.n, CASE WHEN c.n >= $k THEN v.share END AS value
FROM classes AS c
LEFT JOIN (
    SELECT class_id, max(n) / CAST(sum(n) AS DOUBLE) AS share
    FROM class_values
    WHERE attribute = $sensitive
    GROUP BY class_id
) AS v ON v.class_id = c.class_id
WHERE NOT c.suppressed
