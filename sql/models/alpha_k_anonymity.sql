-- alpha_k_anonymity: classes smaller than k or with a sensitive value above the share alpha.  Wong et al. 2006.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, n)
-- params:  $alpha, $k, $sensitive
-- returns: class_id, n
SELECT c.class_id, c.n
FROM classes AS c
LEFT JOIN (
    SELECT class_id, CAST(max(n) AS DOUBLE) AS most, CAST(sum(n) AS DOUBLE) AS n
    FROM class_values
    WHERE attribute = $sensitive
    GROUP BY class_id
) AS v ON v.class_id = c.class_id
WHERE NOT c.suppressed AND (c.n < $k OR coalesce(v.most > $alpha * v.n * (1 + 1e-12), TRUE))
