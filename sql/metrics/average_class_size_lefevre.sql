-- average_class_size_lefevre: published rows per class, in multiples of k.  LeFevre et al. 2006.
-- reads:   classes(n, suppressed)
-- params:  $k
-- returns: attribute, value, worst
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    CAST(sum(CASE WHEN suppressed THEN 0 ELSE n END) AS DOUBLE)
        / nullif(sum(CASE WHEN suppressed THEN 0 ELSE 1 END), 0) / $k AS value,
    CAST(sum(n) AS DOUBLE) / $k AS worst
FROM classes
