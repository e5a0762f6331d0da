-- discernibility: squared sizes of kept classes, n for each suppressed row.  Bayardo and Agrawal 2005.
-- reads:   classes(n, suppressed)
-- params:
-- returns: attribute, value, worst, best
WITH total AS (SELECT CAST(sum(n) AS DOUBLE) AS n FROM classes)
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    sum(CASE WHEN c.suppressed THEN t.n * c.n ELSE CAST(c.n AS DOUBLE) * c.n END) AS value,
    max(t.n * t.n) AS worst,
    max(t.n) AS best
FROM classes AS c CROSS JOIN total AS t
