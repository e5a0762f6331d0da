-- reidentification_risk: one divided by the size of the class, 0 for suppressed rows.  El Emam and Dankar 2008.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, value
SELECT class_id, CASE WHEN suppressed THEN CAST(0 AS DOUBLE) ELSE CAST(1 AS DOUBLE) / n END AS value FROM classes
