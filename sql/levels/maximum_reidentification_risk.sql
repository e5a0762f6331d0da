-- maximum_reidentification_risk: the highest 1 / size of a class.  El Emam and Dankar 2008.
-- reads:   classes(n, suppressed)
-- params:
-- returns: attribute, parameter, value
SELECT CAST(NULL AS VARCHAR) AS attribute, 'threshold' AS parameter, 1 / CAST(min(n) AS DOUBLE) AS value
FROM classes
WHERE NOT suppressed
