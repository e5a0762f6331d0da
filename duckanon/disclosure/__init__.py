"""Disclosure: what a table gives away, measured. Reidentification risk, attacks, and which columns could link."""

from duckanon.disclosure.attack import Attack
from duckanon.disclosure.attacks.base import Finding
from duckanon.disclosure.risk import Risk

__all__ = ["Attack", "Finding", "Risk"]
