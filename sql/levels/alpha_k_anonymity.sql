-- alpha_k_anonymity: the smallest alpha that the classes satisfy; k is that of k_anonymity.  Wong et al. 2006.
-- reads:   classes(class_id, suppressed), class_values(class_id, attribute, n)
-- params:
-- returns: attribute, parameter, value
SELECT attribute, 'alpha' AS parameter, max(share) AS value
FROM (
    SELECT v.attribute, max(v.n) / CAST(sum(v.n) AS DOUBLE) AS share
    FROM class_values AS v JOIN classes AS c ON c.class_id = v.class_id
    WHERE NOT c.suppressed
    GROUP BY v.attribute, v.class_id
) AS s
GROUP BY attribute
