-- k_anonymity: the largest k that the classes satisfy.  Sweeney 2002.
-- reads:   classes(n, suppressed)
-- params:
-- returns: attribute, parameter, value
SELECT CAST(NULL AS VARCHAR) AS attribute, 'k' AS parameter, CAST(min(n) AS DOUBLE) AS value
FROM classes
WHERE NOT suppressed
