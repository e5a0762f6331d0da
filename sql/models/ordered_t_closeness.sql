-- ordered_t_closeness: the ordered distance of each class from the whole table.  Li et al. 2007.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, value, n), domain_values(attribute, value, ord, n)
-- params:  $sensitive
-- returns: class_id, n, value
WITH cumulated AS (
    SELECT value, ord, sum(n) OVER (ORDER BY ord) / CAST(sum(n) OVER () AS DOUBLE) AS upto, count(*) OVER () AS size
    FROM domain_values
    WHERE attribute = $sensitive
), whole AS (
    -- below: the cumulative frequency before the value. area: the sum of all cumulative frequencies before it.
    SELECT
        value,
        ord,
        upto,
        size,
        lag(upto, 1, 0) OVER (ORDER BY ord) AS below,
        sum(upto) OVER (ORDER BY ord) - upto AS area,
        sum(upto) OVER () AS total
    FROM cumulated
), entries AS (
    SELECT v.class_id, v.n, w.ord, w.upto, w.below, w.area, w.size, w.total
    FROM class_values AS v LEFT JOIN whole AS w ON w.value IS NOT DISTINCT FROM v.value
    WHERE v.attribute = $sensitive
), steps AS (
    -- From a value of the class to the next its own cumulative frequency, reached, stays the same.
    SELECT
        class_id,
        ord,
        upto,
        area,
        size,
        sum(n) OVER (PARTITION BY class_id ORDER BY ord) / CAST(sum(n) OVER (PARTITION BY class_id) AS DOUBLE) AS reached,
        lead(ord, 1, size) OVER (PARTITION BY class_id ORDER BY ord) AS next_ord,
        lead(below, 1, 1) OVER (PARTITION BY class_id ORDER BY ord) AS next_below,
        lead(area, 1, total) OVER (PARTITION BY class_id ORDER BY ord) AS next_area,
        CASE WHEN row_number() OVER (PARTITION BY class_id ORDER BY ord) = 1 THEN area ELSE 0 END AS lead_in
    FROM entries
), passings AS (
    -- Where the table's cumulative frequency passes it at a value that the class lacks, that value is found by sorting
    -- both together: passed counts the values before, passed_area adds up their cumulative frequencies.
    SELECT
        class_id,
        ord,
        area,
        size,
        reached,
        next_ord,
        next_area,
        lead_in,
        sum(CASE WHEN class_id IS NULL THEN 1 ELSE 0 END) OVER running AS passed,
        sum(CASE WHEN class_id IS NULL THEN reached ELSE 0 END) OVER running AS passed_area
    FROM (
        SELECT class_id, ord, area, size, reached, next_ord, next_area, lead_in
        FROM steps
        WHERE upto < reached AND next_below > reached
        UNION ALL
        SELECT NULL AS class_id, ord, area, size, upto AS reached, NULL AS next_ord, NULL AS next_area, NULL AS lead_in
        FROM whole
    ) AS both_sides
    WINDOW running AS (ORDER BY reached ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
), parts AS (
    SELECT class_id, ord, size, lead_in + abs((next_ord - ord) * reached - (next_area - area)) AS moved
    FROM steps
    WHERE ord IS NULL OR upto >= reached OR next_below <= reached
    UNION ALL
    SELECT
        class_id,
        ord,
        size,
        lead_in + (2 * passed - ord - next_ord) * reached - 2 * passed_area + area + next_area AS moved
    FROM passings
    WHERE class_id IS NOT NULL
), measured AS (
    -- A value that the table lacks has no place in the order: as far as can be.
    SELECT
        class_id,
        CASE
            WHEN count(*) > count(ord) THEN 1
            WHEN max(size) < 2 THEN 0
            ELSE sum(moved) / (max(size) - 1)
        END AS distance
    FROM parts
    GROUP BY class_id
)
SELECT c.class_id, c.n, m.distance AS value
FROM classes AS c LEFT JOIN measured AS m ON m.class_id = c.class_id
WHERE NOT c.suppressed
