-- recursive_c_l_diversity: the smallest c that holds, at the largest l of l_diversity.  Machanavajjhala et al. 2006.
-- reads:   classes(class_id, suppressed), class_values(class_id, attribute, n)
-- params:
-- returns: attribute, parameter, value
WITH ranked AS (
    SELECT
        v.attribute,
        v.class_id,
        v.n,
        row_number() OVER (PARTITION BY v.attribute, v.class_id ORDER BY v.n DESC) AS place,
        count(*) OVER (PARTITION BY v.attribute, v.class_id) AS distinct_values
    FROM class_values AS v JOIN classes AS c ON c.class_id = v.class_id
    WHERE NOT c.suppressed
), least AS (
    SELECT attribute, min(distinct_values) AS l FROM ranked GROUP BY attribute
), measured AS (
    SELECT
        r.attribute,
        max(r.n) / CAST(sum(CASE WHEN r.place >= t.l THEN r.n ELSE 0 END) AS DOUBLE) AS c
    FROM ranked AS r JOIN least AS t ON t.attribute = r.attribute
    GROUP BY r.attribute, r.class_id
)
-- The comparison is strict, and allows for rounding: what is told must be larger than what was found.
SELECT attribute, 'c' AS parameter, max(c) * (1 + 2e-12) AS value FROM measured GROUP BY attribute
