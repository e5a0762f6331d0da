-- sample_uniqueness: the classes of one member, where they are more than this share of all members.  Dalenius 1986.
-- reads:   classes(class_id, n, suppressed)
-- params:  $threshold
-- returns: class_id, n
SELECT c.class_id, c.n
FROM classes AS c
CROSS JOIN (
    SELECT sum(CASE WHEN n = 1 THEN 1 ELSE 0 END) AS alone, sum(n) AS n FROM classes WHERE NOT suppressed
) AS t
WHERE NOT c.suppressed AND c.n = 1 AND t.alone > $threshold * t.n * (1 + 1e-12)
