-- l_diversity: the different sensitive values of each class.  Machanavajjhala et al. 2006.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute)
-- params:  $sensitive
-- returns: class_id, n, value
SELECT c.class_id, c.n, coalesce(v.distinct_values, 0) AS value
FROM classes AS c
LEFT JOIN (
    SELECT class_id, count(*) AS distinct_values FROM class_values WHERE attribute = $sensitive GROUP BY class_id
) AS v ON v.class_id = c.class_id
WHERE NOT c.suppressed
