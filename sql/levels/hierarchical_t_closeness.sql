-- hierarchical_t_closeness: the largest distance of a class from the table along the column's hierarchy.  Li et al. 2007.
-- reads:   classes(class_id, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, n), domain_nodes(attribute, value, level, node)
-- params:
-- returns: attribute, parameter, value
WITH heights AS (
    SELECT attribute, greatest(max(level), 1) AS height FROM domain_nodes GROUP BY attribute
), levels AS (
    SELECT d.attribute, d.value, d.level, d.node, h.height
    FROM domain_nodes AS d JOIN heights AS h ON h.attribute = d.attribute
    WHERE d.level < h.height
), totals AS (
    SELECT attribute, CAST(sum(n) AS DOUBLE) AS n FROM domain_values GROUP BY attribute
), whole AS (
    SELECT l.attribute, l.level, l.node, sum(d.n) / max(t.n) AS p
    FROM levels AS l
    JOIN domain_values AS d ON d.attribute = l.attribute AND d.value IS NOT DISTINCT FROM l.value
    JOIN totals AS t ON t.attribute = l.attribute
    GROUP BY l.attribute, l.level, l.node
), entries AS (
    -- Columns without a hierarchy have no such distance.
    SELECT v.attribute, v.class_id, v.value, v.n
    FROM class_values AS v
    JOIN classes AS c ON c.class_id = v.class_id
    JOIN heights AS h ON h.attribute = v.attribute
    WHERE NOT c.suppressed
), sizes AS (
    SELECT attribute, class_id, CAST(sum(n) AS DOUBLE) AS n FROM entries GROUP BY attribute, class_id
), nodes AS (
    SELECT e.attribute, e.class_id, l.level, l.node, max(l.height) AS height, sum(e.n) AS n
    FROM entries AS e
    LEFT JOIN levels AS l ON l.attribute = e.attribute AND l.value IS NOT DISTINCT FROM e.value
    GROUP BY e.attribute, e.class_id, l.level, l.node
), measured AS (
    -- The mean over the levels of the equal distance; a value that the hierarchy or the table lacks is as far as can be.
    SELECT
        v.attribute,
        CASE WHEN count(*) > count(w.p) THEN 1
        ELSE (max(v.height) + sum(abs(v.n / s.n - w.p) - w.p)) / (2 * max(v.height)) END AS distance
    FROM nodes AS v
    JOIN sizes AS s ON s.attribute = v.attribute AND s.class_id = v.class_id
    LEFT JOIN whole AS w ON w.attribute = v.attribute AND w.level = v.level AND w.node = v.node
    GROUP BY v.attribute, v.class_id
)
SELECT attribute, 't' AS parameter, least(greatest(max(distance), 0), 1) AS value FROM measured GROUP BY attribute
