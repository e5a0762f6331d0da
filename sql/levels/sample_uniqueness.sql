-- sample_uniqueness: the share of members that are alone in their class.  Dalenius 1986.
-- reads:   classes(n, suppressed)
-- params:
-- returns: attribute, parameter, value
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    'threshold' AS parameter,
    sum(CASE WHEN n = 1 THEN 1 ELSE 0 END) / CAST(sum(n) AS DOUBLE) AS value
FROM classes
WHERE NOT suppressed
