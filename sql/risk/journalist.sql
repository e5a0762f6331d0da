-- journalist: risk 1/population where it is not known who is in the data; marketer: its mean.  El Emam and Dankar 2008.
-- reads:   classes(class_id, n, suppressed), population_classes(class_id, n)
-- params:  $threshold
-- returns: at_risk, maximum, average, minimum, affected, marketer, population_unique
WITH sizes AS (
    SELECT c.n AS sample, p.n AS population, min(p.n) OVER () AS smallest
    FROM classes AS c JOIN population_classes AS p ON p.class_id = c.class_id
    WHERE NOT c.suppressed
), means AS (
    SELECT
        CAST(sum(CASE WHEN CAST(1 AS DOUBLE) / population > $threshold THEN sample ELSE 0 END) AS DOUBLE)
            / sum(sample) AS at_risk,
        CAST(1 AS DOUBLE) / min(population) AS maximum,
        CAST(1 AS DOUBLE) / max(population) AS minimum,
        CAST(sum(CASE WHEN population = smallest THEN sample ELSE 0 END) AS DOUBLE) / sum(sample) AS affected,
        CAST(count(*) AS DOUBLE) / sum(population) AS drawn,
        sum(CAST(sample AS DOUBLE) / population) / sum(sample) AS marketer,
        CAST(sum(CASE WHEN population = 1 THEN sample ELSE 0 END) AS DOUBLE) / sum(sample) AS population_unique
    FROM sizes
)
SELECT
    at_risk, maximum, greatest(drawn, marketer) AS average, minimum, affected, marketer, population_unique
FROM means
