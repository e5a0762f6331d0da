-- maximum_reidentification_risk: 1 / size of each class.  El Emam and Dankar 2008.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, n, value
SELECT class_id, n, 1 / CAST(n AS DOUBLE) AS value FROM classes WHERE NOT suppressed
