-- prosecutor: reidentification risk 1/size of a person who is known to be in the data.  El Emam and Dankar 2008.
-- reads:   classes(n, suppressed)
-- params:  $threshold
-- returns: at_risk, maximum, average, minimum, affected
WITH sizes AS (
    SELECT n, min(n) OVER () AS smallest FROM classes WHERE NOT suppressed
)
SELECT
    CAST(coalesce(sum(CASE WHEN CAST(1 AS DOUBLE) / n > $threshold THEN n ELSE 0 END), 0) AS DOUBLE) / sum(n) AS at_risk,
    CAST(1 AS DOUBLE) / min(n) AS maximum,
    CAST(count(*) AS DOUBLE) / sum(n) AS average,
    CAST(1 AS DOUBLE) / max(n) AS minimum,
    CAST(sum(CASE WHEN n = smallest THEN n ELSE 0 END) AS DOUBLE) / sum(n) AS affected
FROM sizes
