"""The package's tests as SQL, rendered with Jinja alone: a hundred tables in the time that dbt takes to start."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from duckanon.interfaces.dbt import package_folder


class CompilerError(Exception):
    """What dbt raises for a project that is wrong."""


def _raise(message: str) -> None:
    raise CompilerError(message)


def render(test: str, **arguments: Any) -> str:
    """Return the SQL of a generic test; ``model`` is the table's name as dbt would render it."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(extensions=["jinja2.ext.do"], undefined=StrictUndefined, autoescape=False)
    package = SimpleNamespace()
    environment.globals |= {"duckanon": package, "exceptions": SimpleNamespace(raise_compiler_error=_raise)}
    for file in sorted((package_folder() / "macros").glob("*.sql")):
        text = file.read_text(encoding="utf-8")
        text = text.replace("{% test ", "{% macro test_").replace("{% endtest %}", "{% endmacro %}")
        module = environment.from_string(text).module
        vars(package).update({name: value for name, value in vars(module).items() if not name.startswith("_")})
    return str(getattr(package, f"test_{test}")(**arguments))
