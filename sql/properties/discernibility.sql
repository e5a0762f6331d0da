-- discernibility: rows that a row cannot be distinguished from, all rows for a suppressed one.  Bayardo and Agrawal 2005.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, value
SELECT class_id, CAST(CASE WHEN suppressed THEN sum(n) OVER () ELSE n END AS DOUBLE) AS value FROM classes
