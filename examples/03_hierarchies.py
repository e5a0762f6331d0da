"""Hierarchies: how a value becomes coarser. Ready-made, built by rule, from a file, or written out."""

import tempfile
from pathlib import Path

import pyarrow as pa

import duckanon
from duckanon import Hierarchy

# By rule: made for the values when they are met.
age = Hierarchy.intervals(width=10, factors=[2, 2])
print(age.materialise([17, 23, 64]).preview())

zip_code = Hierarchy.mask(levels=4)
print(zip_code.materialise(["97201"]).preview())

# Written out: a tree of labels with the values at its ends.
ward = Hierarchy.tree({"Surgery": ["General Surgery", "Orthopedics"], "Medicine": ["Cardiology", "Oncology"]})
print(ward.preview())

people = pa.table(
    {
        "age": [31, 33, 34, 38, 61, 62, 66, 69],
        "ward": ["Cardiology", "Oncology", "Cardiology", "Oncology"] * 2,
        "country": ["France", "Germany", "Austria", "Belgium", "Peru", "Chile", "Brazil", "Bolivia"],
    }
)

with tempfile.TemporaryDirectory() as folder:
    # From a file in the field's exchange format: value; level 1; level 2; ...
    file = Path(folder) / "ward.csv"
    ward.to_csv(file)

    with duckanon.anonymize(
        people,
        quasi_identifiers=["ward", "age", "country"],
        # "countries" comes with the package: country, region, continent.
        hierarchies={"age": age, "ward": file, "country": "countries"},
        k=4,
        algorithm="datafly",  # one level of its hierarchy for every column
    ) as release:
        print(release.recoding.levels)
        for row in sorted(release.classes().to_pylist(), key=str):
            print(row)

# A value that the hierarchy does not know stops the work (its number is told, never the value itself) ...
strangers = pa.table({"ward": ["Cardiology", "Oncology", "Pediatrics"]})
try:
    duckanon.anonymize(strangers, quasi_identifiers=["ward"], hierarchies={"ward": ward}, k=1)
except duckanon.errors.HierarchyError as error:
    print("refused:", error)

# ... unless unknown values may be published as the top label.
with duckanon.anonymize(
    strangers, quasi_identifiers=["ward"], hierarchies={"ward": ward}, k=1, on_unknown="top"
) as release:
    print(sorted(release.to_arrow()["ward"].to_pylist()))
