-- bivariate_correlation: change of Cramer's V, median over pairs of columns.  Cramer 1946, El Emam et al. 2020.
-- reads:   pairs(released, first, second, x, y, n)
-- params:
-- returns: attribute, value, worst
WITH margins AS (
    SELECT
        released,
        first,
        second,
        x,
        y,
        CAST(n AS DOUBLE) AS n,
        CAST(sum(n) OVER (PARTITION BY released, first, second, x) AS DOUBLE) AS a,
        CAST(sum(n) OVER (PARTITION BY released, first, second, y) AS DOUBLE) AS b,
        CAST(sum(n) OVER (PARTITION BY released, first, second) AS DOUBLE) AS total
    FROM pairs
), tables AS (
    SELECT
        released,
        first,
        second,
        sum(n / a * n / b) - 1 AS phi,
        least(
            count(DISTINCT x) + max(CASE WHEN x IS NULL THEN 1 ELSE 0 END),
            count(DISTINCT y) + max(CASE WHEN y IS NULL THEN 1 ELSE 0 END)
        ) - 1 AS freedom
    FROM margins
    GROUP BY released, first, second
), correlations AS (
    SELECT
        first,
        second,
        released,
        CASE WHEN freedom > 0 AND phi > 0 THEN sqrt(phi / freedom) ELSE 0 END AS v
    FROM tables
), changes AS (
    SELECT o.v AS before, abs(o.v - coalesce(r.v, 0)) AS change
    FROM correlations AS o
    LEFT JOIN correlations AS r ON r.released AND r.first = o.first AND r.second = o.second
    WHERE NOT o.released
)
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY change) AS value,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY before) AS worst
FROM changes
