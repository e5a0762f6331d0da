-- maximum_reidentification_risk: classes whose 1 / size is above the threshold.  El Emam and Dankar 2008.
-- reads:   classes(class_id, n, suppressed)
-- params:  $threshold
-- returns: class_id, n
SELECT class_id, n FROM classes WHERE NOT suppressed AND n * $threshold < 1 - 1e-12
