"""Sentences of a report that do not depend on figures: what bounds and outputs disclose, what is not promised."""

from __future__ import annotations

BOUNDS = {
    "grid": "Bounds in the published values come from the hierarchies or from a round grid, never from a class's own "
    "minimum, maximum or median: no bound discloses a person's value, and groups of numbers and dates are published "
    "whole. Of other columns, and of numbers that all lie within one group of the grid, the lowest label over all rows "
    "of a class is published, which can be a single value: no label below it has all of them.",
    "cut": "Bounds in the published values are the values on both sides of the cuts at which classes were divided: "
    "each is the exact value of a person in the table, though not always of one in the class.",
    "tight": "Bounds in the published values are the smallest and largest value of each class: every bound is the "
    "exact value of a person. This is for research and for comparing with papers, not for release.",
}

OUTPUT = {
    "midpoint": "Published numbers are halfway between the bounds of a region, and no person's value need be there; "
    "where a bound is open, the smallest or largest value of the whole table takes its place.",
    "mean": "Published numbers are means of classes: the mean of a class of k is a function of k exact values, and an "
    "adversary who knows all of them but one can compute that one.",
    "geometric_mean": "Published numbers are geometric means of classes: that of a class of k is a function of k exact "
    "values, and an adversary who knows all of them but one can compute that one.",
    "median": "Published is the lower median of each class, which is the exact value of a person in it.",
    "mode": "Published is the most frequent value of each class, the exact value of at least one person in it; how "
    "many have it is not disclosed.",
    "medoid": "Published are values of one row of each class, the nearest to its centre: the exact values of a person, "
    "and with all columns written so, that person's exact row.",
    "set": "All values of a region that occur in the table are listed: each is the exact value of a person, and a "
    "value that is not listed is no person's.",
    "proportional": "Published is the distribution of the original values in each class, of numbers and dates by the "
    "first level of their hierarchy, unless they are published at level 0. Beyond the class it discloses which values "
    "its members have and how many have each: a share of 1/n in a class of n is one person's value, though not whose; "
    "a value that is not listed is no member's; a share of 1 is the value of every member. An adversary who knows all "
    "members but one can compute that one's value.",
    "lca": "Regions are published as the lowest label of the hierarchy that holds them.",
    "bounds": "The two bounds of a region are published as columns of their own; NULL is an open bound.",
    "struct": "The two bounds of a region are published as one column; NULL is an open bound.",
}
TIGHT_SET = (
    "The values that occur in each class are listed: every member of a class has one of them, and each is the exact "
    "value of a person in it."
)

GROUPS = (
    "groups were made of neighbours in the order of the alphabet, and every label says what it holds. {a, b} is a list "
    "of values; [a, z] holds every value from a to z, and these are more than 16."
)
NOT_PROMISED = (
    "Against knowledge beyond the declared quasi-identifiers: columns published as they are can distinguish persons.",
    "What all members of a class have in common: k-anonymity hides who a row is, not what a class shares.",
    "What follows from combining this release with other releases or with other publishers' data.",
    "What can be inferred from knowing how the algorithm chose this result among others.",
    "Differential privacy.",
    "That nothing can be learned from how long the work took.",
)

HIDDEN_PROOF = (
    "Groups cannot be seen in the file, and must not be: what is checked is a private table that ties each published "
    "row to its row of the source and to its group. Its rows are those of the source and those of the file, whole row "
    "for whole row; every group has as many members as required; in every group each block of columns has the same "
    "tuples as before; and no block stayed that had to move."
)
HIDDEN_MEANING = (
    "Every column has exactly the values that it had before, as often as before. Which values are in one row "
    "changed: within a group of similar rows, the values of each block were permuted. A row of the release looks "
    "like a row of the source, and most rows belong to no person."
)
HIDDEN_NOT_PROMISED = (
    "k-anonymity of what can be seen: rows may be unique, and equal rows do not form a class.",
    "That a combination of values within one block stays unknown: it is published as it was, in another row, and "
    "one that only a single person has shows that this person is in the data.",
    "What all members of a group have in common, or nearly all: it is disclosed whichever row it is in.",
    "Anything, once the seed of a seeded release is guessed. Without a seed the random numbers come from the operating "
    "system and are not stored.",
)
SEEDED = "seeded: for tests, not for release"
PROOF = "Every privacy requirement was checked again on the file itself, by code that is independent of the algorithm."
AGAIN = "The same source, roles, hierarchies and parameters give the same rows with these versions, in another order."
AGAIN_DRAWN = (
    "The same rows cannot be made again: the random numbers are not stored. Groups, blocks and figures are the same."
)
SIZES = {"min": "Smallest", "q25": "25 %", "q75": "75 %", "max": "Largest"}
BETTER = {"lower": "lower is better", "higher": "higher is better"}

PROSECUTOR = (
    "The chance to pick a person's row, for an adversary who knows that the person is in the data and knows all of the "
    "person's quasi-identifiers (the prosecutor): 1 / smallest class at most, classes / members on average."
)
HIDDEN_PROSECUTOR = (
    "The chance to link a person to the person's own row, for an adversary who knows that the person is in the data, "
    "the quasi-identifiers of all persons, and how the release was made, but not the random numbers."
)
EXITS = {
    0: "published",
    1: "unexpected error",
    2: "configuration",
    3: "data or schema drift",
    4: "the privacy requirements cannot be met",
    5: "the gate refused",
    6: "environment",
    130: "interrupted",
    143: "terminated",
}
NEXT = {
    1: "Run it again with -v to see where it happened. If it happens again, it is an error of duckanon: report it.",
    2: "Correct the job file; duckanon job validate finds what is wrong without reading rows.",
    3: "Look at the source: what changed is named above. If the change is intended, change the bound of [expect] that "
    "it breaks; against the last run, duckanon run --accept-drift publishes once, and later runs are compared with "
    "that one. A new column needs a role first, a new value a place in its hierarchy.",
    4: "Allow more loss (a higher suppression_limit, coarser hierarchies, a higher bound of [expect]), or require "
    "less. duckanon run --dry-run tries it without publishing.",
    5: "Do not publish by other means. Keep the job file and this page, and report it: the gate found what the "
    "algorithm should have kept.",
    6: "Job and data may be sound. Make room (disk, memory, the server, another run), and run it again; schedulers may "
    "do that by themselves.",
    130: "Run it again: nothing was published, and what was begun is removed by the next run.",
    143: "Run it again: nothing was published, and what was begun is removed by the next run.",
}
"""What to do after a run that failed, by its exit code."""
