-- average_class_size: rows per class, the suppressed rows being one class.  LeFevre 2006, ARX.
-- reads:   classes(n, suppressed)
-- params:
-- returns: attribute, value, worst
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    CAST(sum(n) AS DOUBLE)
        / (sum(CASE WHEN suppressed THEN 0 ELSE 1 END) + max(CASE WHEN suppressed THEN 1 ELSE 0 END)) AS value,
    CAST(sum(n) AS DOUBLE) AS worst
FROM classes
