-- entropy_l_diversity: classes whose sensitive values have less entropy than ln l.  Machanavajjhala et al. 2006.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, n)
-- params:  $l, $sensitive
-- returns: class_id, n
SELECT c.class_id, c.n
FROM classes AS c
LEFT JOIN (
    SELECT class_id, ln(CAST(sum(n) AS DOUBLE)) - sum(n * ln(CAST(n AS DOUBLE))) / sum(n) AS entropy
    FROM class_values
    WHERE attribute = $sensitive
    GROUP BY class_id
) AS v ON v.class_id = c.class_id
WHERE NOT c.suppressed AND coalesce(v.entropy < ln($l) - 1e-12, TRUE)
