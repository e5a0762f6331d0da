-- recursive_c_l_diversity: how many times as frequent as the l-th and all rarer ones the top value of each class is.  Machanavajjhala 2006.
-- reads:   classes(class_id, n, suppressed), class_values(class_id, attribute, n)
-- params:  $l, $sensitive
-- returns: class_id, n, value
WITH ranked AS (
    SELECT class_id, n, row_number() OVER (PARTITION BY class_id ORDER BY n DESC) AS place
    FROM class_values
    WHERE attribute = $sensitive
), measured AS (
    SELECT
        class_id,
        CAST(max(n) AS DOUBLE) AS most,
        CAST(sum(CASE WHEN place >= $l THEN n ELSE 0 END) AS DOUBLE) AS tail
    FROM ranked
    GROUP BY class_id
)
SELECT c.class_id, c.n, CASE WHEN v.tail > 0 THEN v.most / v.tail END AS value
FROM classes AS c LEFT JOIN measured AS v ON v.class_id = c.class_id
WHERE NOT c.suppressed
