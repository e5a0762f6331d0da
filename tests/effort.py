"""How many generated examples a test tries: a part of what the profile says."""

from __future__ import annotations

from hypothesis import settings


def share(part: float) -> settings:
    """Try a part of as many examples as the profile says: fewer for what takes long, more for what is quick."""
    return settings(max_examples=max(1, round(settings().max_examples * part)))
