"""Promises, risk, loss: which of several releases is better, and for whom?"""

import duckanon
from duckanon.models import LDiversity
from duckanon.testing.hospital import hospital

stays = hospital(5_000)
columns = {"quasi_identifiers": ["birth_date", "sex", "zip"], "sensitive": ["diagnosis"]}

# Before: which columns single people out, what the table satisfies, how likely a row is linked with its person.
found = duckanon.suggest(stays).to_pylist()
print("likely identifiers:", [row["column"] for row in found if row["role"] == "identifier"])
risk = duckanon.risk(stays, quasi_identifiers=columns["quasi_identifiers"], sampling_fraction=0.01)
print("alone in their class:", f"{risk.sample_unique:.0%}")

# Three promises about the same rows.
promises = {
    "k = 5": {"k": 5},
    "k = 20": {"k": 20},
    "k = 5, l = 4": {"k": 5, "models": [LDiversity(4, "diagnosis")]},
}
releases = {name: duckanon.anonymize(stays, **columns, **promise) for name, promise in promises.items()}
for name, release in releases.items():
    print(name, "keeps:", "; ".join(check.text for check in release.checks))

# After: every row of the source has its property in every release, so gains and losses are counted person by person.
comparison = duckanon.compare(releases, properties=["class_size", "iyengar_utility"], by=["coverage", "spread"])
for row in comparison.gains.to_pylist():
    if (row["release"], row["against"]) == ("k = 20", "k = 5"):
        print(row["property"], "of k = 20 beside k = 5:", row["rows_better"], "better,", row["rows_worse"], "worse")
for row in comparison.bias.to_pylist():
    print("class sizes of", row["release"], "are uneven by a Gini of", round(row["gini"], 2))
for row in comparison.metrics.to_pylist():
    if row["metric"] == "loss" and row["attribute"] is None:
        print("loss:", {name: round(row[name], 3) for name in releases})

# duckanon.comparison.write_properties puts the vectors beside the rows in your own database, and
# comparison.plot("releases.png") draws all of it (pip install 'duckanon[plots]').
for release in releases.values():
    release.close()
