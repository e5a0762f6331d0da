-- delta_presence: least and largest share of a class of the population in the data; none without one.  Nergiz 2007.
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
SELECT CAST(NULL AS VARCHAR) AS attribute, 'minimum' AS parameter, min(share) AS value FROM shares
UNION ALL
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    'maximum' AS parameter,
    CASE WHEN count(*) = count(share) THEN max(share) END AS value
FROM shares
