-- twin_diversity: the different sensitive values of each class.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute)
-- params:  $sensitive
-- returns: class_id, n, value
SELECT c.class_id, c.n, count(v.attribute) AS value
FROM classes AS c LEFT JOIN class_values AS v ON v.class_id = c.class_id AND v.attribute = $sensitive
WHERE NOT c.suppressed
GROUP BY c.class_id, c.n
