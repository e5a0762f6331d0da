-- kl_divergence: divergence of the original tuples from those that the release makes equally likely.  Kifer and Gehrke 2006.
-- reads:   classes(class_id, n, suppressed), class_cells(class_id, leaves), domain(leaves), tuples(tuple_id, class_id, n)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), whole AS (SELECT exp(-sum(ln(CAST(leaves AS DOUBLE)))) AS share FROM domain),
boxes AS (
    SELECT c.class_id, max(c.n) * exp(-sum(ln(CAST(x.leaves AS DOUBLE)))) AS share
    FROM classes AS c JOIN class_cells AS x ON x.class_id = c.class_id
    WHERE NOT c.suppressed
    GROUP BY c.class_id
), found AS (
    SELECT u.tuple_id, CAST(sum(u.n) AS DOUBLE) AS n, coalesce(sum(b.share), 0) AS share
    FROM tuples AS u LEFT JOIN boxes AS b ON b.class_id = u.class_id
    GROUP BY u.tuple_id
)
SELECT
    CAST(NULL AS VARCHAR) AS attribute,
    sum(f.n / t.n * ln(f.n / (f.share + t.suppressed * w.share))) / ln(2) AS value,
    sum(f.n / t.n * ln(f.n / (t.n * w.share))) / ln(2) AS worst
FROM found AS f CROSS JOIN total AS t CROSS JOIN whole AS w
