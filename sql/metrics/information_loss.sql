-- information_loss: width of an ordered cell over the leaves of its domain, depth of any other.  Byun et al. 2007.
-- reads:   cell_rows(attribute, level, leaves, lo, hi), domain(attribute, kind, height, leaves, lo, hi)
-- params:
-- returns: attribute, value
SELECT
    x.attribute,
    CASE
        WHEN d.kind = 'ordered' AND x.leaves IS NULL THEN coalesce(d.hi / d.leaves - d.lo / d.leaves, 0)
        WHEN d.kind = 'ordered' THEN coalesce(x.hi / d.leaves - x.lo / d.leaves, 0)
        WHEN x.leaves IS NULL THEN 1
        WHEN x.level IS NOT NULL AND d.height > 0 THEN CAST(x.level AS DOUBLE) / d.height
        WHEN d.leaves > 1 THEN CAST(x.leaves - 1 AS DOUBLE) / (d.leaves - 1)
        ELSE 0
    END AS value
FROM cell_rows AS x JOIN domain AS d ON d.attribute = x.attribute
