"""Attack your own release: what do adversaries learn of people who are in it, beyond what they know of anybody?"""

import duckanon
from duckanon.testing.hospital import hospital

# Half of the stays are released; the others are controls: what is guessed of them, the release did not give away.
stays = hospital(2_000)
people, others = stays.slice(0, 1_000), stays.slice(1_000)
columns = {"quasi_identifiers": ["birth_date", "sex", "zip"], "sensitive": ["diagnosis"]}

# Without a choice all attacks are tried, learners that are trained on the release among them.
some = ["distance_linkage", "homogeneity", "inference", "linkage"]
with duckanon.anonymize(people, **columns, k=10, algorithm="datafly") as release:
    found = duckanon.attack(people, release, control=others, attacks=some)
print(found.verdict)
for f in found.findings:
    if f.control is not None:
        print(f"{f.attack}: {f.success:.1%} on the release, {f.control:.1%} on controls, {f.base_rate:.1%} by chance")

# Somebody forgot that the zip code tells people apart, and published it as it is.
with duckanon.anonymize(
    people,
    quasi_identifiers=["birth_date", "sex"],
    sensitive=["diagnosis"],
    insensitive=["zip"],
    k=10,
    algorithm="datafly",
) as release:
    leaking = duckanon.attack(people, release.to_arrow(), control=others, **columns, attacks=["linkage"])
(worst,) = leaking.findings
print("forgotten column found:", worst.success > 1 / 10 and worst.level == "much")

# leaking.write_html("attacks.html") writes the report as a page; duckanon attack ... --html does the same.
print("report:", leaking.report().splitlines()[0])
