-- delta_presence: the bounds that hold of shares of the population; none above 1, or without members.  Nergiz 2007.
-- reads:   classes(class_id, n, suppressed), population_classes(class_id, n)
-- params:
-- returns: attribute, parameter, value
WITH shares AS (
    SELECT CASE WHEN p.n > 0 THEN c.n / CAST(p.n AS DOUBLE) END AS share
    FROM classes AS c LEFT JOIN population_classes AS p ON p.class_id = c.class_id
    WHERE NOT c.suppressed
    UNION ALL
    -- Members of the population of whose class nobody is in the data.
    SELECT 0 AS share
    FROM population_classes AS p LEFT JOIN classes AS c ON c.class_id = p.class_id
    WHERE c.class_id IS NULL AND p.n > 0
)
SELECT CAST(NULL AS VARCHAR) AS attribute, 'minimum' AS parameter, CASE WHEN min(share) > 1 THEN 1 ELSE min(share) END AS value FROM shares
UNION ALL
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    'maximum' AS parameter,
    CASE WHEN count(*) = count(share) AND max(share) <= 1 + 1e-12 THEN least(max(share), 1) END AS value
FROM shares
