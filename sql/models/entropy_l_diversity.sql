-- entropy_l_diversity: how many equally frequent values have the entropy of each class.  Machanavajjhala et al. 2006.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, n)
-- params:  $sensitive
-- returns: class_id, n, value
-- Two equally frequent values are exactly 2-diverse: what rounding took from a whole number is given back.
SELECT c.class_id, c.n, CASE WHEN abs(v.l - round(v.l)) <= v.l * 1e-12 THEN round(v.l) ELSE v.l END AS value
FROM classes AS c
LEFT JOIN (
    SELECT class_id, exp(greatest(ln(CAST(sum(n) AS DOUBLE)) - sum(n * ln(CAST(n AS DOUBLE))) / sum(n), 0)) AS l
    FROM class_values
    WHERE attribute = $sensitive
    GROUP BY class_id
) AS v ON v.class_id = c.class_id
WHERE NOT c.suppressed
