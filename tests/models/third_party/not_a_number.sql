-- not_a_number: a value that is not a number, of each class.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, n, value
SELECT class_id, n, CAST('nan' AS DOUBLE) AS value
FROM classes
WHERE NOT suppressed
