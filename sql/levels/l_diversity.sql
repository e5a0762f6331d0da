-- l_diversity: the largest l that the classes satisfy.  Machanavajjhala et al. 2006.
-- reads:   classes(class_id, suppressed), class_values(class_id, attribute)
-- params:
-- returns: attribute, parameter, value
SELECT attribute, 'l' AS parameter, CAST(min(distinct_values) AS DOUBLE) AS value
FROM (
    SELECT v.attribute, count(*) AS distinct_values
    FROM class_values AS v JOIN classes AS c ON c.class_id = v.class_id
    WHERE NOT c.suppressed
    GROUP BY v.attribute, v.class_id
) AS s
GROUP BY attribute
