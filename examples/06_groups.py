"""Classes within groups: Mondrian as a function of lists, for what you make of the classes yourself."""

import duckanon
from duckanon.testing.hospital import hospital

stays = hospital(5_000)
con = duckanon.connect()
con.register("stays", stays)

# Every ward is divided by itself: a class number for each member of the list, at least ten members to a class. Every
# field is cut by; what only goes along, as the cost does, is left out of the list that is divided.
con.execute("""
    CREATE TABLE classed AS
    WITH wards AS (
        SELECT ward, list({'birth_date': birth_date, 'zip': zip, 'cost': cost}) AS members
        FROM stays
        GROUP BY ward
    )
    SELECT ward, unnest(members) AS stay,
        unnest(mondrian_classes([{'birth_date': m.birth_date, 'zip': m.zip} FOR m IN members], 10)) AS class
    FROM wards
""")
print("stays with a class:", con.execute("SELECT count(class) FROM classed").fetchone()[0], "of 5000")

# What is told of a class is up to you, and nothing checks it: here its size, and two means.
con.execute("""
    CREATE TABLE told AS
    SELECT ward, class, count(*) AS n, round(avg(year(stay.birth_date))) AS born, round(avg(stay.cost)) AS cost
    FROM classed
    WHERE class IS NOT NULL
    GROUP BY ward, class
""")
print("smallest class has at least 10 stays:", con.execute("SELECT min(n) >= 10 FROM told").fetchone()[0])
wards, classes = con.execute("SELECT count(DISTINCT ward), count(*) FROM told").fetchone()
print("wards:", wards, "and more classes than wards:", classes > wards)
con.close()
