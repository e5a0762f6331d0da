-- class_size: members of each class, the suppressed rows being one class.  Dewri et al. 2009.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, value
SELECT
    class_id,
    CAST(CASE WHEN suppressed THEN sum(n) OVER (PARTITION BY suppressed) ELSE n END AS DOUBLE) AS value
FROM classes
