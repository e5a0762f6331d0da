-- entropy_l_diversity: the largest l that the classes satisfy, which need not be whole.  Machanavajjhala et al. 2006.
-- reads:   classes(class_id, suppressed), class_values(class_id, attribute, n)
-- params:
-- returns: attribute, parameter, value
-- Two equally frequent values are exactly 2-diverse: what rounding took from a whole number is given back.
SELECT attribute, 'l' AS parameter, CASE WHEN abs(l - round(l)) <= l * 1e-12 THEN round(l) ELSE l END AS value
FROM (SELECT attribute, exp(greatest(min(entropy), 0)) AS l FROM (
    SELECT v.attribute, ln(CAST(sum(v.n) AS DOUBLE)) - sum(v.n * ln(CAST(v.n AS DOUBLE))) / sum(v.n) AS entropy
    FROM class_values AS v JOIN classes AS c ON c.class_id = v.class_id
    WHERE NOT c.suppressed
    GROUP BY v.attribute, v.class_id
) AS s GROUP BY attribute) AS m
