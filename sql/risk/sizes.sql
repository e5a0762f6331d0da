-- sizes: number and sizes of the kept classes, and who is alone in one.
-- reads:   classes(n, suppressed)
-- params:
-- returns: classes, members, smallest, largest, singletons
SELECT
    count(*) AS classes,
    coalesce(sum(n), 0) AS members,
    min(n) AS smallest,
    max(n) AS largest,
    coalesce(sum(CASE WHEN n = 1 THEN 1 ELSE 0 END), 0) AS singletons
FROM classes
WHERE NOT suppressed
