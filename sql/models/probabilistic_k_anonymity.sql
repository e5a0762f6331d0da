-- probabilistic_k_anonymity: groups that are too small, whose blocks are no permutations, or that did not move.  Senavirathne and Torra 2021.
-- reads:   permuted_blocks(class_id, n, suppressed, strayed, stuck, linkage)
-- params:  $k
-- returns: class_id, n
SELECT class_id, min(n) AS n
FROM permuted_blocks
WHERE NOT suppressed
GROUP BY class_id
HAVING min(n) < $k
    OR max(strayed) > 0
    OR max(CASE WHEN stuck THEN 1 ELSE 0 END) > 0
    OR max(linkage) * $k > 1.000000001
