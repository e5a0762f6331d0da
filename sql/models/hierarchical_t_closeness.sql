-- hierarchical_t_closeness: the distance of each class from the whole table along the column's hierarchy.  Li et al. 2007.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, n), domain_nodes(attribute, value, level, node)
-- params:  $sensitive
-- returns: class_id, n, value
WITH levels AS (
    -- The levels below the top; a hierarchy that has nothing else keeps its only one.
    SELECT d.value, d.level, d.node, greatest(h.height, 1) AS height
    FROM domain_nodes AS d
    CROSS JOIN (SELECT max(level) AS height FROM domain_nodes WHERE attribute = $sensitive) AS h
    WHERE d.attribute = $sensitive AND d.level < greatest(h.height, 1)
), whole AS (
    SELECT l.level, l.node, sum(d.n) / max(t.n) AS p
    FROM levels AS l
    JOIN domain_values AS d ON d.attribute = $sensitive AND d.value IS NOT DISTINCT FROM l.value
    CROSS JOIN (SELECT CAST(sum(n) AS DOUBLE) AS n FROM domain_values WHERE attribute = $sensitive) AS t
    GROUP BY l.level, l.node
), sizes AS (
    SELECT class_id, CAST(sum(n) AS DOUBLE) AS n FROM class_values WHERE attribute = $sensitive GROUP BY class_id
), nodes AS (
    SELECT v.class_id, l.level, l.node, max(l.height) AS height, sum(v.n) AS n
    FROM class_values AS v
    LEFT JOIN levels AS l ON l.value IS NOT DISTINCT FROM v.value
    WHERE v.attribute = $sensitive
    GROUP BY v.class_id, l.level, l.node
), measured AS (
    -- The mean over the levels of the equal distance; a value that the hierarchy or the table lacks is as far as can be.
    SELECT
        v.class_id,
        CASE WHEN count(*) > count(w.p) THEN 1
        ELSE (max(v.height) + sum(abs(v.n / s.n - w.p) - w.p)) / (2 * max(v.height)) END AS distance
    FROM nodes AS v
    JOIN sizes AS s ON s.class_id = v.class_id
    LEFT JOIN whole AS w ON w.level = v.level AND w.node = v.node
    GROUP BY v.class_id
)
SELECT c.class_id, c.n, m.distance AS value
FROM classes AS c LEFT JOIN measured AS m ON m.class_id = c.class_id
WHERE NOT c.suppressed
