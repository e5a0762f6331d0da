-- loss: leaves that a cell lost, of those it can lose; 0 where there is one.  Iyengar 2002, ARX.
-- reads:   cell_rows(attribute, leaves), domain(attribute, leaves)
-- params:
-- returns: attribute, value
SELECT
    x.attribute,
    CASE WHEN d.leaves > 1 THEN CAST(coalesce(x.leaves, d.leaves) - 1 AS DOUBLE) / (d.leaves - 1) ELSE 0 END AS value
FROM cell_rows AS x JOIN domain AS d ON d.attribute = x.attribute
