-- table_only: nothing of a class; in the table the number of classes.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, n, value, table_value
SELECT class_id, n, 0 AS value, count(*) OVER () AS table_value
FROM classes
WHERE NOT suppressed
