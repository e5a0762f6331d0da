-- probabilistic_k_anonymity: the members of each group; none where a block is no permutation, was not moved, or links rows too well.  Senavirathne and Torra 2021.
-- reads:   permuted_blocks(class_id, n, suppressed, strayed, stuck, linkage)
-- params:  $k
-- returns: class_id, n, value
SELECT
    class_id,
    min(n) AS n,
    CASE
        WHEN max(strayed) = 0
            AND max(CASE WHEN stuck THEN 1 ELSE 0 END) = 0
            AND max(linkage) * $k <= 1.000000001
        THEN min(n)
    END AS value
FROM permuted_blocks
WHERE NOT suppressed
GROUP BY class_id
