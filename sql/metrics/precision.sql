-- precision: one minus level / height of a cell, of its lost leaves where there is no level.  Sweeney 2002.
-- reads:   cell_rows(attribute, level, leaves), domain(attribute, height, leaves)
-- params:
-- returns: attribute, value
SELECT
    x.attribute,
    CASE
        WHEN x.leaves IS NULL THEN 0
        WHEN x.level IS NOT NULL AND d.height > 0 THEN 1 - CAST(x.level AS DOUBLE) / d.height
        WHEN d.leaves > 1 THEN 1 - CAST(x.leaves - 1 AS DOUBLE) / (d.leaves - 1)
        ELSE 1
    END AS value
FROM cell_rows AS x JOIN domain AS d ON d.attribute = x.attribute
