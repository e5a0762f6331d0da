-- average_reidentification_risk: the classes above the threshold, where classes / members is.  El Emam and Dankar 2008.
-- reads:   classes(class_id, n, suppressed)
-- params:  $threshold
-- returns: class_id, n
SELECT c.class_id, c.n
FROM classes AS c
CROSS JOIN (SELECT count(*) AS classes, sum(n) AS n FROM classes WHERE NOT suppressed) AS t
WHERE NOT c.suppressed AND t.classes > $threshold * t.n * (1 + 1e-12) AND c.n * $threshold < 1 - 1e-12
