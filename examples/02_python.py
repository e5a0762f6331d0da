"""Python: from any table to a release with a proof, a loss and a report."""

import tempfile
from pathlib import Path

import duckanon
from duckanon.testing.hospital import hospital

stays = hospital(5_000)  # an Arrow table; a path, a glob, a query, a pandas or polars frame do as well

# Only the schema is looked at: what would be done, the SQL included.
parameters = {
    "quasi_identifiers": ["birth_date", "sex", "zip"],
    "sensitive": ["diagnosis"],
    "insensitive": ["length_of_stay"],
    "entity_key": "patient_id",  # several stays of one patient count once
    "hierarchies": {"zip": "us_zip5"},  # for the other columns one is made, and the report says so
    "k": 5,
    "suppression_limit": 0.05,
    "algorithm": "datafly",  # every column on one level; without it, every class has a region of its own
}
print(duckanon.Plan.of(stays, **parameters).explain().splitlines()[1])

with duckanon.anonymize(stays, **parameters) as release:
    print("rows:", release.rows_published, "published,", release.rows_suppressed, "suppressed")
    print("levels:", release.recoding.levels)
    for check in release.checks:
        print("checked:", check.text, "->", check.holds)
    for measure in release.measure(["loss"]):
        print("loss:", measure.attribute or "all", round(measure.value, 3))

    # The release is an Arrow stream, so every data frame library can read it.
    print("as Arrow:", release.to_arrow().num_rows, "rows")

    with tempfile.TemporaryDirectory() as folder:
        # Staged, synced, read again, checked again, and only then renamed.
        written = release.write(Path(folder) / "stays.parquet")
        print("files:", sorted(p.name for p in Path(folder).iterdir()))

        # Is a table k-anonymous? This works for any table, whoever made it.
        keys = parameters["quasi_identifiers"]
        for result in duckanon.check(written["release"], quasi_identifiers=keys, k=5):
            print("the file is 5-anonymous:", result.holds)
