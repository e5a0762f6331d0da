"""The reference: written at build time from the registries, the declarations and the docstrings of the package.

A line ``<!-- reference: models -->`` in a page is replaced by what :data:`PARTS` writes under that name. Nothing of it
is stored, so that it cannot become untrue.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, ClassVar

from pygments.lexers.sql import SqlLexer
from pygments.token import Punctuation

_MARK = re.compile(r"^<!-- reference: (\w+) -->$", re.M)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    escaped = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    first = list(head)
    lines = [first, ["---"] * len(first), *escaped]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def code(value: object) -> str:
    """Return a value as inline code."""
    text = str(value)
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def auto(directive: str, name: str, *options: str) -> str:
    """Return a directive of autodoc, which reads docstrings as reStructuredText."""
    lines = [f".. {directive}:: {name}", *(f"   :{option}:" for option in options)]
    return "```{eval-rst}\n" + "\n".join(lines) + "\n```\n"


def place(kind: type) -> str:
    """Return the name by which a class is imported: of the package of its kind, if that offers it."""
    public = ".".join(kind.__module__.split(".")[:2])
    offered = getattr(import_module(public), kind.__qualname__, None) is kind
    return f"{public if offered else kind.__module__}.{kind.__qualname__}"


def registered(registry: Any, facts: Callable[[Any], Iterator[str]]) -> str:
    """Return a table of all members of a registry, and a section about each."""
    members = [(name, registry.get(name)) for name in registry]
    parts = [table(["name", "what it is"], ([f"[{code(n)}](#{n})", m.summary] for n, m in members))]
    for name, member in members:
        parts += [
            f"## {code(name)}\n",
            f"{sentence(member.summary)}\n",
            *facts(member),
            auto("autoclass", place(member)),
        ]
    return "\n".join(parts)


def sentence(text: str) -> str:
    """Return a summary as a sentence."""
    return f"{text[0].upper()}{text[1:]}".rstrip(".") + "."


def models() -> str:
    """Return every privacy model."""
    from duckanon.models.base import models as registry

    return registered(registry, lambda model: iter(()))


def algorithms() -> str:
    """Return every algorithm."""
    from duckanon.algorithms.base import algorithms as registry

    return registered(registry, lambda algorithm: iter(()))


def metrics() -> str:
    """Return every metric."""
    from duckanon.metrics.base import metrics as registry

    def facts(metric: Any) -> Iterator[str]:
        low, high = metric.bounds
        yield f"{span(low, high)}; {metric.direction} is better.\n"

    return registered(registry, facts)


def span(low: float, high: float | None) -> str:
    """Return the values of a metric in words."""
    return f"{low:g} or more" if high is None else f"{low:g} to {high:g}"


def attacks() -> str:
    """Return every attack of ``duckanon.attack``."""
    from duckanon.assess.attacks.base import attackers as registry

    members = [(name, registry.get(name)) for name in registry]
    parts = []
    for name, member in members:
        parts += [f"## {code(name)}\n", auto("autoclass", place(member))]
    return "\n".join(parts)


def parameters() -> str:
    """Return the parameters of a request: the same in Python, SQL and job files."""
    from duckanon.plan.request import PARAMETERS

    def rows() -> Iterator[list[str]]:
        for one in PARAMETERS.values():
            choices = " One of " + ", ".join(code(c) for c in one.choices) + "." if one.choices else ""
            default = "required" if one.required else "" if one.default in (None, ()) else code(one.default)
            yield [code(one.name), one.kind, default, one.about + choices]

    return table(["parameter", "kind", "default", "meaning"], rows())


def sql_functions() -> str:
    """Return every function in SQL with its parameters."""
    from duckanon.interfaces.sql.door import FUNCTIONS
    from duckanon.interfaces.sql.group_classes import CLASSES
    from duckanon.plan.request import PARAMETERS

    shared = {name for name in PARAMETERS if name != "data"}
    parts = []
    for name, function in FUNCTIONS.items():
        parts.append(f"## {code(name)}\n\n{function.about}\n")
        own = list(function.parameters)
        if shared <= {p.name for p in own}:
            own = [p for p in own if p.name not in shared]
            more = ", and:" if len(own) > 1 else "."
            parts.append(f"Arguments: the table, all [parameters of a release](parameters.md){more}\n")
            own = own[1:]
        elif not own:
            parts.append("No arguments.\n")
        if own:
            meanings = _meanings(name)
            rows = ([code(p.name) + (" (required)" if p.required else ""), p.kind, meanings(p.name)] for p in own)
            parts.append(table(["argument", "kind", "meaning"], rows))
    names = ", ".join(code(f"{one.name}({', '.join(one.parameters)})") for one in CLASSES)
    parts.append(f"## Functions of lists\n\n{names} return the number of the class of each member of a list.\n")
    parts.append("[Classes within groups](../guides/groups.md) shows how they are used.\n")
    return "\n".join(parts)


_COMMANDS = {"information_loss": "measure", "query_errors": "utility", "compare_releases": "compare"}
"""The commands that do what functions in SQL do, where their names differ."""


def _meanings(function: str) -> Callable[[str], str]:
    """Return what gives the meaning of an argument: that of the parameter, or of the option, of the same name."""
    import typer

    from duckanon.interfaces.cli import app
    from duckanon.plan.request import PARAMETERS

    found = {"source": "The table.", "original": "The original table.", "release": "The release, as a table."}
    command = typer.main.get_command(app).commands.get(_COMMANDS.get(function, function))  # type: ignore[attr-defined]
    for parameter in command.params if command is not None else ():
        found.setdefault(parameter.name, parameter.help or "")
    for name, parameter in PARAMETERS.items():
        found[name] = parameter.about
    return lambda name: found.get(name, "").replace(", separated by commas. Can be repeated", "")


def commands() -> str:
    """Return every command of the command line with its arguments and options."""
    import typer

    from duckanon.interfaces.cli import app

    parts: list[str] = []

    def walk(name: str, command: Any, depth: int) -> None:
        subcommands = getattr(command, "commands", None)
        if name != "duckanon":
            parts.append(f"{'#' * min(depth, 3)} {code(name)}\n")
            parts.append(prose(command.help or "") + "\n")
        if subcommands is None:
            rows = []
            for parameter in command.params:
                if parameter.name in ("help", "json", "as_json", "verbose") or getattr(parameter, "hidden", False):
                    continue
                rows.append(_parameter(parameter))
            metavar = " ".join(words for words in (_usage(p) for p in command.params) if words)
            parts.append(f"```text\n{name} [OPTIONS] {metavar}".rstrip() + "\n```\n")
            parts.append(table(["argument or option", "meaning"], rows))
        for child in (subcommands or {}).values():
            if not getattr(child, "hidden", False):
                walk(f"{name} {child.name}", child, depth + 1)

    walk("duckanon", typer.main.get_command(app), 1)
    return "\n".join(parts)


def _usage(parameter: Any) -> str:
    if parameter.secondary_opts or parameter.opts[0].startswith("-"):
        return ""
    name = _name(parameter) + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper()).strip("[]{}")


def _parameter(parameter: Any) -> list[str]:
    about = parameter.help or ""
    if not parameter.opts[0].startswith("-"):
        return [code(_name(parameter)), about]
    value = "" if parameter.is_flag else f" {parameter.metavar}" if parameter.metavar else ""
    names = ", ".join(code(name + value) for name in [*parameter.opts, *parameter.secondary_opts])
    default = parameter.default
    told = default in (None, False, ()) or callable(default) or "default" in about
    return [names, about if told else f"{about} By default {code(default)}."]


def prose(text: str) -> str:
    """Return a help text without its line breaks."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "\n\n".join(" ".join(p.replace("\b", "").split()) for p in paragraphs)


def job_keys() -> str:
    """Return every table and key of a job file."""
    from duckanon.jobs.keys import JobKeys, json_schema

    schema = json_schema()
    parts = []
    for name, shape in schema["properties"].items():
        body = _resolved(shape, schema)
        about = shape.get("description") or body.get("description", "")
        title = f"[[{name}]]" if name == "tables" else f"[{name}]"
        parts.append(f"## `{title}`\n\n{sentence(about) if about else ''}\n")
        keys = body.get("properties")
        if name == "tables" or not keys:
            continue
        rows = []
        for key, value in keys.items():
            default = "" if value.get("default") is None else code(_toml(value["default"]))
            rows.append([code(key), _kinds(value, schema), default, value.get("description", "")])
        parts.append(table(["key", "value", "default", "meaning"], rows))
    assert JobKeys.__struct_fields__
    return "\n".join(parts)


def _resolved(shape: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in shape:
        return dict(schema["definitions"][shape["$ref"].rsplit("/", 1)[1]])
    for one in shape.get("anyOf", ()):
        if found := _resolved(one, schema):
            return found
    return shape


_KINDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "table"}


def _kinds(shape: dict[str, Any], schema: dict[str, Any]) -> str:
    if "enum" in shape:
        return ", ".join(code(one) for one in shape["enum"])
    if "anyOf" in shape:
        kinds = [_kinds(one, schema) for one in shape["anyOf"]]
        kinds = [kind for kind in dict.fromkeys(kinds) if kind]
        return " or ".join(kind for kind in kinds if kind != "whole number" or "number" not in kinds)
    if shape.get("type") == "array":
        items = _kinds(shape.get("items", {}), schema) or "values"
        return f"list of {items}s" if items in ("text", "table") else f"list of {items}"
    return _KINDS.get(str(shape.get("type")), str(shape.get("type", "")))


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "[" + ", ".join(f'"{one}"' for one in value) + "]" if isinstance(value, list) else str(value)


def exit_codes() -> str:
    """Return the exit codes of errors."""
    from duckanon import errors
    from duckanon.jobs import exit_code

    rows = []
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.DuckanonError) and kind.__module__ == errors.__name__:
            rows.append([code(name), str(exit_code(kind(""))), (inspect.getdoc(kind) or "").split("\n\n")[0]])
    return table(["error", "exit code", "meaning"], rows)


PARTS: dict[str, Callable[[], str]] = {
    one.__name__: one
    for one in (
        models, algorithms, metrics, attacks, parameters, sql_functions, commands, job_keys, exit_codes,     )
}  # fmt: skip


def _written(app: Any, page: str, content: list[str]) -> None:
    content[0] = _MARK.sub(lambda match: PARTS[match.group(1)](), content[0])


class DuckDBLexer(SqlLexer):
    """SQL with the structs and lists of DuckDB."""

    name = "SQL of DuckDB"
    aliases: ClassVar[list[str]] = []
    tokens: ClassVar[dict[str, Any]] = {
        **SqlLexer.tokens,
        "root": [(r"[{}\[\]:]", Punctuation), *SqlLexer.tokens["root"]],
    }


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.add_lexer("sql", DuckDBLexer)
    app.connect("source-read", _written)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
