"""Anonymous tables that learners can read: a model is trained on a release and scores raw rows."""

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import duckanon
from duckanon.assess.utility import AnonymousEncoder
from duckanon.testing.hospital import hospital

stays = hospital(4_000, seed=7)
names = ["birth_date", "sex", "marital_status", "education"]
known, new = stays.slice(0, 3_000), stays.slice(3_000)

with duckanon.anonymize(known, quasi_identifiers=names, sensitive=["ward"], k=10) as release:
    table = release.to_arrow()
    print("a cell of the release:", any("[" in cell for cell in table.column("birth_date").to_pylist()))

    # The encoder reads intervals, labels, sets and "*"; the same columns come of plain values that nobody published.
    for method in ("one_class", "fill_parent", "fill_child", "proportional", "value_set", "midpoint"):
        encoder = AnonymousEncoder(method).fit(release)
        trained, scored = encoder.transform(release), encoder.transform(new)
        print(f"{method}: the same columns: {trained.shape[1] == scored.shape[1]}")

    # As a step of a pipeline: no mapping of values is written by hand.
    model = make_pipeline(AnonymousEncoder("fill_parent", columns=names), LogisticRegression(solver="liblinear"))
    model.fit(table, [ward == "Obstetrics" for ward in table.column("ward").to_pylist()])
    print("rows scored:", len(model.predict(new)))

# The distribution of the original values in each class can be published, too; the report says what that tells.
with duckanon.anonymize(known, quasi_identifiers=names, k=10, output="proportional") as release:
    cell = dict(release.to_arrow().column("sex")[0].as_py())
    print("the shares of a class are 1:", abs(sum(cell.values()) - 1) < 1e-9)
    print("told in the report:", "one person's value" in release.report())
