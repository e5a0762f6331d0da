"""However a class is split, no fewer rows violate a model than it says of the whole class."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon.models.base import Groups, Histograms
from duckanon.plan.plan import parse_model

MODELS = {
    "t_closeness": [0.0, 0.1, 0.3, 0.7, 1.0],
    "ordered_t_closeness": [0.0, 0.05, 0.2, 0.5],
    "hierarchical_t_closeness": [0.0, 0.1, 0.4],
    "entropy_l_diversity": [1.0, 1.5, 2.0, 3.0],
    "alpha_k_anonymity": [(0.3, 1), (0.5, 1), (0.9, 1), (1.0, 1)],
    "l_diversity": [1, 2, 3],
    "basic_beta_likeness": [0.1, 1.0],
}
TOTALS = np.array([40, 25, 20, 10, 5], dtype=np.int64)
ANCESTORS = (np.arange(5), np.array([0, 0, 1, 1, 1]), np.zeros(5, dtype=np.int64))


def groups(classes: list[list[int]]) -> Groups:
    starts, codes, counts = [0], [], []
    for values in classes:
        found, n = np.unique(np.array(values), return_counts=True)
        codes += found.tolist()
        counts += n.tolist()
        starts.append(len(codes))
    sizes = np.array([len(c) for c in classes], dtype=np.int64)
    arrays = [np.array(a, dtype=np.int64) for a in (starts, codes, counts)]
    return Groups(sizes, sizes, Histograms(*arrays, TOTALS, ANCESTORS))


@pytest.mark.parametrize("name", MODELS)
@given(st.data())
def test_what_persists(name: str, data: st.DataObject) -> None:
    given_ = data.draw(st.sampled_from(MODELS[name]))
    text = f"{name}{given_}" if isinstance(given_, tuple) else f"{name}({given_})"
    model = parse_model(text)
    values = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=14))
    (share,) = model.persisting(groups([values]))
    assert 0 <= share <= 1
    parts = data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)))
    split = [found for p in range(4) if (found := [v for v, at in zip(values, parts, strict=True) if at == p])]
    satisfied = model.satisfied(groups(split))
    broken = sum(len(part) for part, fine in zip(split, satisfied, strict=True) if not fine)
    assert broken >= share * len(values) - 1e-9
    if model.satisfied(groups([values]))[0]:
        assert share == 0
