-- prosecutor: reidentification risk 1/size of somebody known to be in the data.  El Emam and Dankar 2008.
-- reads:   classes(n, suppressed)
-- params:  $threshold
-- returns: at_risk, maximum, average
SELECT
    CAST(coalesce(sum(CASE WHEN CAST(1 AS DOUBLE) / n > $threshold THEN n ELSE 0 END), 0) AS DOUBLE) / sum(n) AS at_risk,
    CAST(1 AS DOUBLE) / min(n) AS maximum,
    CAST(count(*) AS DOUBLE) / sum(n) AS average
FROM classes
WHERE NOT suppressed
