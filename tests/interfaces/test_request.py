"""One request, four interfaces: Python, SQL, job files and the command line have the same parameters and defaults."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import typer.main

import duckanon
from duckanon.interfaces.cli.app import app
from duckanon.interfaces.sql.door import FUNCTIONS
from duckanon.jobs import plan_job
from duckanon.jobs.keys import json_schema
from duckanon.plan.request import PARAMETERS, Request

HOW_IT_RUNS = {"connection", "engine", "progress", "stage"}
"""Parameters of ``anonymize`` that are not about what is asked for."""


def test_python_has_each_parameter_with_its_default() -> None:
    signature = inspect.signature(duckanon.anonymize).parameters
    assert [name for name in signature if name not in HOW_IT_RUNS] == list(PARAMETERS)
    assert {n for n, p in signature.items() if p.default is p.empty} == {n for n, p in PARAMETERS.items() if p.required}
    for name, parameter in PARAMETERS.items():
        if not parameter.required:
            assert signature[name].default == parameter.default, name


def test_the_docstring_of_anonymize_describes_each_parameter_in_their_order() -> None:
    documented = (inspect.getdoc(duckanon.anonymize) or "").split("Parameters\n")[1].split("Examples\n")[0]
    headings = [line.split(" : ")[0].split(", ") for line in documented.splitlines() if line and line[0] not in " -"]
    described = [name for heading in headings for name in heading]
    assert sorted(set(PARAMETERS) - set(described)) == []
    assert sorted(set(described) - set(PARAMETERS) - HOW_IT_RUNS) == []


@pytest.mark.parametrize("name", ["anonymize", "anonymize_report", "anonymize_classes"])
def test_sql_has_each_parameter_and_none_by_default(name: str) -> None:
    parameters = {p.name: p for p in FUNCTIONS[name].parameters}
    assert [{"source": "data"}.get(name, name) for name in parameters] == list(PARAMETERS)
    # Columns that are published as they are may be the only quasi-identifiers: then SQL needs no other.
    assert [p.name for p in parameters.values() if p.required] == ["source"]


def test_job_files_have_each_parameter_but_the_seed() -> None:
    schema = json_schema()
    tables = {
        name: schema["definitions"][part["$ref"].split("/")[-1]]
        for name, part in schema["properties"].items()
        if "$ref" in part
    }
    keys = [key for table in ("roles", "privacy", "steering") for key in tables[table]["properties"]]
    # [source], [hierarchies] and [algorithm] are tables of their own; output is [output] form.
    keys += ["data", "hierarchies", "algorithm", *(["output"] if "form" in tables["output"]["properties"] else [])]
    assert sorted(keys) == sorted(set(PARAMETERS) - {"seed"})


def test_a_job_file_with_the_least_in_it_asks_for_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    job = tmp_path / "job.toml"
    job.write_text(
        '[source]\npath = "t.csv"\n[roles]\nquasi_identifiers = ["age"]\n[privacy]\nk = 2\n[output]\npath = "out.csv"\n'
    )
    plan, default = plan_job(job), Request(data=None, quasi_identifiers=["age"], k=2)
    assert plan.suppression_limit == default.suppression_limit
    assert plan.on_unknown == default.on_unknown
    assert plan.bounds == default.bounds
    assert plan.output == {"age": default.output}
    assert (plan.seed, plan.population, plan.within) == (None, None, ())
    assert (
        plan.algorithm.name == duckanon.Plan.of(str(tmp_path / "t.csv"), quasi_identifiers=["age"], k=2).algorithm.name
    )


def test_commands_have_parameters_of_a_request_without_defaults_of_their_own() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for command in ("check", "privacy"):
        options = {p.name: p for p in commands[command].params}
        shared = set(options) & set(PARAMETERS)
        assert shared >= {"quasi_identifiers", "sensitive", "k", "l", "t", "models", "entity_key"}
        for name in shared - {"quasi_identifiers"}:
            assert not options[name].default, name


def test_what_is_not_a_parameter_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'kk'"):
        Request(data=None, quasi_identifiers=["age"], kk=5)  # type: ignore[call-arg]
