-- gcp: width of an interval, or leaves of a label, as a share of the domain.  Xu et al. 2006, Ghinita et al. 2007.
-- reads:   cell_rows(attribute, leaves, lo, hi), domain(attribute, kind, leaves, lo, hi, labels)
-- params:
-- returns: attribute, value
SELECT
    x.attribute,
    CASE
        WHEN d.leaves <= 1 OR x.leaves <= 1 THEN 0
        WHEN x.leaves IS NULL THEN 1
        WHEN d.kind = 'ordered' AND NOT d.labels AND d.hi > d.lo AND x.lo IS NOT NULL
            THEN (x.hi / 2 - x.lo / 2) / (d.hi / 2 - d.lo / 2)
        ELSE CAST(x.leaves AS DOUBLE) / d.leaves
    END AS value
FROM cell_rows AS x JOIN domain AS d ON d.attribute = x.attribute
