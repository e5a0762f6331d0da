"""Attackers: each tries to learn something from a release. One file, one registration."""

from duckanon.assess.attacks.base import LEVELS, Attacker, Case, Finding, Settings, attackers

__all__ = ["LEVELS", "Attacker", "Case", "Finding", "Settings", "attackers"]
