-- granularity: share of the domain that a cell could be besides its value.  Iyengar 2002.
-- reads:   cell_rows(attribute, leaves), domain(attribute, leaves)
-- params:
-- returns: attribute, value
SELECT
    x.attribute,
    CAST(coalesce(x.leaves, d.leaves) - 1 AS DOUBLE) / d.leaves AS value
FROM cell_rows AS x JOIN domain AS d ON d.attribute = x.attribute
