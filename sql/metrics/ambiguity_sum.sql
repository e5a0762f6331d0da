-- ambiguity_sum: how many combinations of leaves all rows stand for.  Nergiz and Clifton 2007, ARX.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, leaves), domain(leaves)
-- params:
-- returns: attribute, value, worst, best
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), whole AS (SELECT exp(sum(ln(CAST(leaves AS DOUBLE)))) AS leaves FROM domain),
boxes AS (
    SELECT c.class_id, max(c.n) * exp(sum(ln(CAST(x.leaves AS DOUBLE)))) AS covered
    FROM classes AS c JOIN class_cells AS x ON x.class_id = c.class_id
    WHERE NOT c.suppressed
    GROUP BY c.class_id
), kept AS (SELECT coalesce(sum(covered), 0) AS covered FROM boxes)
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    CASE WHEN t.n > 0 THEN k.covered + t.suppressed * w.leaves END AS value,
    t.n * w.leaves AS worst,
    t.n AS best
FROM total AS t CROSS JOIN whole AS w CROSS JOIN kept AS k
