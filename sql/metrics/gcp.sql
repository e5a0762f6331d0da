-- gcp: widths of intervals and leaves of labels as shares of their domains, mean over cells.  Ghinita et al. 2007.
-- reads:   classes(n, suppressed), cell_rows(attribute, leaves, lo, hi, n), domain(attribute, kind, leaves, lo, hi, weight, labels)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), kept AS (
    SELECT
        x.attribute,
        sum(x.n * CASE
            WHEN d.leaves <= 1 OR x.leaves <= 1 THEN 0
            WHEN d.kind = 'ordered' AND NOT d.labels AND d.hi > d.lo AND x.lo IS NOT NULL
                THEN (x.hi / 2 - x.lo / 2) / (d.hi / 2 - d.lo / 2)
            ELSE CAST(x.leaves AS DOUBLE) / d.leaves
        END) AS lost
    FROM cell_rows AS x JOIN domain AS d ON d.attribute = x.attribute
    GROUP BY x.attribute
), parts AS (
    SELECT
        d.attribute,
        d.weight,
        CASE WHEN d.leaves > 1 THEN coalesce(k.lost, 0) + t.suppressed ELSE 0 END / t.n AS value,
        CASE WHEN d.leaves > 1 THEN 1.0 ELSE 0.0 END AS worst
    FROM domain AS d CROSS JOIN total AS t LEFT JOIN kept AS k ON k.attribute = d.attribute
)
SELECT attribute, value, worst FROM parts
UNION ALL
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    sum(value * weight) / sum(weight) AS value,
    sum(worst * weight) / sum(weight) AS worst
FROM parts
