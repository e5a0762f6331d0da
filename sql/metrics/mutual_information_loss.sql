-- mutual_information_loss: mutual information of two columns in bits before less that after, mean over pairs.  Senavirathne and Torra 2021.
-- reads:   pairs(released, first, second, x, y, n)
-- params:
-- returns: attribute, value, worst
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
), losses AS (
    SELECT o.first, o.second, o.bits AS before, o.bits - coalesce(r.bits, 0) AS lost
    FROM information AS o
    LEFT JOIN information AS r ON r.released AND r.first = o.first AND r.second = o.second
    WHERE NOT o.released
), sides AS (
    SELECT first AS attribute, before, lost FROM losses
    UNION ALL
    SELECT second AS attribute, before, lost FROM losses
)
SELECT attribute, avg(lost) AS value, avg(before) AS worst FROM sides GROUP BY attribute
UNION ALL
SELECT CAST(NULL AS VARCHAR) AS attribute, avg(lost) AS value, avg(before) AS worst FROM losses
