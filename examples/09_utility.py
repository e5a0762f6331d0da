"""Does the release still teach? Learners, range queries, and the job that serves a task best."""

import tempfile
from pathlib import Path

import duckanon
from duckanon.testing.hospital import hospital, write_hospital

stays = hospital(2_000)
columns = {"quasi_identifiers": ["birth_date", "sex", "zip"], "insensitive": ["length_of_stay", "ward"]}


def anonymize(table, k=5):
    return duckanon.anonymize(table, k=k, algorithm="optimal", suppression_limit=0.05, **columns)


# Rows are held out before anything is anonymized, by patient: nobody is learned by heart and then recognised.
parts = duckanon.utility.split(stays, target="ward", seed=1, entity_key="patient_id")
print("train and held-out rows:", parts.train.num_rows, parts.test.num_rows)

# The training part is anonymized, learners are taught by it, and tested on the raw rows held out.
found = duckanon.utility.trial(parts, anonymize, learners=["decision_tree"], seeds=2)
for line in found.summary().to_pylist():
    print(
        f"{line['learner']}, taught by {line['trained_on']}, tested on {line['tested_on']}: AUROC {line['auroc']:.2f}"
    )
print("raw rows teach more than the most frequent class:", found.score("auroc", learner="decision_tree") > 0.5)

# A release of all rows has the tested rows in it, and says so.
with anonymize(stays) as release:
    careless = duckanon.utility.evaluate(stays, release, target="ward", learners=["decision_tree"], seeds=1)
    print("in-sample:", careless.in_sample)
    # How far off are counts and means of random ranges?
    answers = duckanon.utility.queries(stays, release, n=100, average="length_of_stay")
print("queries:", {line["kind"]: line["queries"] for line in answers.summary().to_pylist()})

# Which algorithm and parameters serve the task best? The best job is written beside the first, and can be run.
with tempfile.TemporaryDirectory() as folder:
    job = Path(folder) / "stays.toml"
    write_hospital(Path(folder) / "stays.parquet", 1_000)
    job.write_text("""
[source]
path = "stays.parquet"
[roles]
entity_key = "patient_id"
quasi_identifiers = ["birth_date", "sex", "zip"]
insensitive = ["length_of_stay", "ward"]
unlisted = "drop"
[privacy]
k = 5
[output]
path = "release/stays.parquet"
""")
    tuned = duckanon.tuning.tune(
        job, target="ward", learner="decision_tree", algorithms=["datafly"], k=[5, 20], seeds=1
    )
    print("candidates tried:", len(tuned.tried), "on the front:", 0 < len(tuned.front) <= len(tuned.tried))
    print("written:", tuned.write(job.with_name("best.toml")).name)
