"""Errors: one family, a hint where a name is misspelt."""

from __future__ import annotations

import inspect

import pytest

from duckanon import errors
from duckanon.errors import ConfigError, DuckanonError, PrivacyViolation, did_you_mean

ALL = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, Exception)]


@pytest.mark.parametrize("error", ALL)
def test_every_error_belongs_to_the_family_and_says_what_it_is(error: type[Exception]) -> None:
    assert issubclass(error, DuckanonError)
    assert error.__doc__
    assert str(error("what")) == "what"


@pytest.mark.parametrize("name", ["JobError", "RoleError", "ParameterError"])
def test_an_error_about_what_was_asked_is_a_config_error(name: str) -> None:
    assert issubclass(getattr(errors, name), ConfigError)


def test_a_privacy_violation_carries_the_checks() -> None:
    assert PrivacyViolation("broken", ("check",)).checks == ("check",)
    assert PrivacyViolation("broken").checks == ()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("agee", " Did you mean 'age'?"),
        ("AGE", " Did you mean 'age'?"),
        ("zipcode", " Did you mean 'zip_code'?"),
        ("", ""),
    ],
)
def test_did_you_mean(name: str, hint: str) -> None:
    assert did_you_mean(name, ["age", "zip_code", "sex"]) == hint


def test_did_you_mean_without_names() -> None:
    assert did_you_mean("age", []) == ""
