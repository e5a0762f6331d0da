-- sample_uniqueness: 1 for classes of one member; in the table the share of members who are alone.  Dalenius 1986.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, n, value, table_value
SELECT
    class_id,
    n,
    CASE WHEN n = 1 THEN 1 ELSE 0 END AS value,
    sum(CASE WHEN n = 1 THEN 1 ELSE 0 END) OVER () / CAST(sum(n) OVER () AS DOUBLE) AS table_value
FROM classes
WHERE NOT suppressed
