"""Probabilistic k-anonymity: every column keeps its values, and nobody is linked to a row above 1 in k."""

from collections import Counter

import duckanon
from duckanon.testing.hospital import hospital

stays = hospital(2_000)
parameters = {
    "quasi_identifiers": ["birth_date", "sex", "education", "country"],
    "sensitive": ["diagnosis"],
    "k": 5,
}

# Values change rows within groups of at least five similar stays; no value is generalized, none is left out.
with duckanon.anonymize(stays, **parameters, algorithm="probabilistic") as release:
    published = release.to_arrow()
    kept = [Counter(published[name].to_pylist()) == Counter(stays[name].to_pylist()) for name in published.column_names]
    print("columns with the same values as before:", f"{sum(kept)} of {len(kept)}")
    print(
        "types are the same:",
        all(published.schema.field(n).type == stays.schema.field(n).type for n in published.column_names),
    )
    print("promise:", release.checks[0].text)

    # Groups cannot be seen in the release, so nothing counts them: not the reader, not a metric, not `verify`.
    summary = release.summary()["permutation"]
    print("permuted together:", "; ".join(", ".join(block) for block in summary["blocks"]))
    print("linked at most 1 in 5:", summary["linkage"] <= 1 / 5)
    try:
        release.classes()
    except duckanon.errors.UnsupportedError as error:
        print("no classes:", str(error).split(":")[0])

# Similar by what stands beside a value, rather than by being the same: Ahmad-Dey's dissimilarity.
algorithm = duckanon.algorithms.Probabilistic(dissimilarity="ahmad_dey")
with duckanon.anonymize(stays, **parameters, algorithm=algorithm) as release:
    told = release.summary()["permutation"]["mutual_information"]["with_sensitive"]
    print("bits of the diagnosis are counted before and after:", sorted(told) == ["after", "before", "pairs"])
