"""Clusters: microaggregation of numbers and dates, and the loss of each algorithm beside the others."""

import duckanon
from duckanon.testing.hospital import hospital

stays = hospital(3_000)
parameters = {
    "quasi_identifiers": ["birth_date", "length_of_stay", "cost"],
    "sensitive": ["diagnosis"],
    "k": 5,
}

# MDAV: clusters of five stays, each published with the means of its cluster, of the columns' own types.
with duckanon.anonymize(stays, **parameters, algorithm="mdav", output="mean") as release:
    print("types:", ", ".join(f"{f.name} {f.type}" for f in release.to_arrow().schema))
    ratio = next(m for m in release.measure(["sse_ratio"]) if m.attribute is None)
    print("less than a tenth of the variance is lost:", ratio.value < 0.1)

# Three diagnoses in every class as well: clusters that have fewer are merged with the nearest.
with duckanon.anonymize(stays, **parameters, l=3, algorithm="tdg") as release:
    print("promises kept:", all(check.holds for check in release.checks))

# Which algorithm loses least here?
found = {}
for algorithm in ("mondrian", "mdav", "tdg", "knn_clustering", "k_member", "greedy"):
    with duckanon.anonymize(stays, **parameters, algorithm=algorithm) as release:
        found[algorithm] = next(m.value for m in release.measure(["loss"]) if m.attribute is None)
print("loses least:", min(found, key=found.__getitem__))
