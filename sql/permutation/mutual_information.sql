-- mutual_information: mutual information of two columns in bits, before and after.  Senavirathne and Torra 2021, equation 3.
-- reads:   pairs(released, first, second, x, y, n)
-- params:
-- returns: first, second, before, after
WITH margins AS (
    SELECT
        released,
        first,
        second,
        CAST(n AS DOUBLE) AS n,
        CAST(sum(n) OVER (PARTITION BY released, first, second, x) AS DOUBLE) AS a,
        CAST(sum(n) OVER (PARTITION BY released, first, second, y) AS DOUBLE) AS b,
        CAST(sum(n) OVER (PARTITION BY released, first, second) AS DOUBLE) AS total
    FROM pairs
), information AS (
    SELECT released, first, second, sum(n / total * ln(n / a * total / b)) / ln(2) AS bits
    FROM margins
    GROUP BY released, first, second
)
SELECT
    first,
    second,
    max(CASE WHEN NOT released THEN bits END) AS before,
    max(CASE WHEN released THEN bits END) AS after
FROM information
GROUP BY first, second
