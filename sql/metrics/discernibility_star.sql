-- discernibility_star: squared sizes of kept classes alone.  El Emam et al. 2009.
-- reads:   classes(n, suppressed)
-- params:
-- returns: attribute, value, worst
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    sum(CASE WHEN suppressed THEN 0 ELSE CAST(n AS DOUBLE) * n END) AS value,
    CAST(sum(n) AS DOUBLE) * sum(n) AS worst
FROM classes
