"""The number of generated examples of a test, as a share of the profile's."""

from __future__ import annotations

from hypothesis import settings


def share(part: float) -> settings:
    """Return settings with a share of the profile's examples: fewer for slow tests, more for quick ones."""
    return settings(max_examples=max(1, round(settings().max_examples * part)))
