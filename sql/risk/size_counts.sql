-- size_counts: how many classes have each size.
-- reads:   classes(n, suppressed)
-- params:
-- returns: n, classes, suppressed
SELECT n, count(*) AS classes, suppressed FROM classes GROUP BY n, suppressed ORDER BY n, suppressed
