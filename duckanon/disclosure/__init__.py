"""Disclosure: what a table gives away, measured. Reidentification risk, attacks, and which columns could link."""

from duckanon.disclosure.attack import Attack
from duckanon.disclosure.attacks.base import Finding
from duckanon.disclosure.files import Leak, file_leaks
from duckanon.disclosure.risk import Risk
from duckanon.disclosure.rowwise import with_risk
from duckanon.disclosure.sets import identifying_sets
from duckanon.disclosure.uniqueness import Uniqueness

__all__ = ["Attack", "Finding", "Leak", "Risk", "Uniqueness", "file_leaks", "identifying_sets", "with_risk"]
