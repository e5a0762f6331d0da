-- average_reidentification_risk: 1 / size of each class; in the table classes / members.  El Emam and Dankar 2008.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, n, value, table_value
SELECT class_id, n, 1 / CAST(n AS DOUBLE) AS value, count(*) OVER () / CAST(sum(n) OVER () AS DOUBLE) AS table_value
FROM classes
WHERE NOT suppressed
