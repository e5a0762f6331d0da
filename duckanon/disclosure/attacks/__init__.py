"""Attackers: each tries to learn something from a release. One file, one registration."""

from duckanon.disclosure.attacks.base import Attacker, Case, Finding, attackers

__all__ = ["Attacker", "Case", "Finding", "attackers"]
