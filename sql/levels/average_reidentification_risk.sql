-- average_reidentification_risk: classes / members.  El Emam and Dankar 2008.
-- reads:   classes(n, suppressed)
-- params:
-- returns: attribute, parameter, value
SELECT CAST(NULL AS VARCHAR) AS attribute, 'threshold' AS parameter, count(*) / CAST(sum(n) AS DOUBLE) AS value
FROM classes
WHERE NOT suppressed
