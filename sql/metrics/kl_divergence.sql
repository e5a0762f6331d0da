-- kl_divergence: divergence of the original tuples from those that the release makes equally likely.  Kifer and Gehrke 2006.
-- reads:   classes(n, suppressed), domain(leaves), tuples(tuple_id, n), tuple_shares(tuple_id, share)
-- params:
-- returns: attribute, value, worst
WITH total AS (
    SELECT CAST(sum(n) AS DOUBLE) AS n, CAST(sum(CASE WHEN suppressed THEN n ELSE 0 END) AS DOUBLE) AS suppressed
    FROM classes
), whole AS (SELECT exp(-sum(ln(CAST(leaves AS DOUBLE)))) AS share FROM domain),
counted AS (
    SELECT tuple_id, CAST(sum(n) AS DOUBLE) AS n FROM tuples GROUP BY tuple_id
), found AS (
    SELECT c.n, s.share FROM counted AS c JOIN tuple_shares AS s ON s.tuple_id = c.tuple_id
), measured AS (
    SELECT sum(f.n * ln(f.n / (f.share + t.suppressed * w.share))) / sum(f.n) / ln(2) AS value
    FROM found AS f CROSS JOIN total AS t CROSS JOIN whole AS w
), even AS (
    SELECT sum(c.n * ln(c.n / (t.n * w.share))) / max(t.n) / ln(2) AS worst
    FROM counted AS c CROSS JOIN total AS t CROSS JOIN whole AS w
)
SELECT CAST(NULL AS VARCHAR) AS attribute, m.value, e.worst FROM measured AS m CROSS JOIN even AS e
