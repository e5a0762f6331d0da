"""Statements for somebody else's session, in which every function and operator is the database's own.

An unqualified function is looked up among the macros of a session first, and so are ``+`` and a list in brackets.
"""

from __future__ import annotations

import re

from sqlglot import exp

from duckanon.engine.sql.relations import DIALECT, builtin

_CALL = re.compile(r"([A-Za-z_]\w*)\(")
_GRAMMAR = {"CAST", "TRY_CAST", "COALESCE", "CASE", "EXISTS", "UNNEST"}
"""What looks like a function but is syntax: no macro can replace it."""
NOT_QUALIFIED = "__duckanon_now"
"""A function that is looked up in the caller's database first, so that its transaction sees what is committed then."""
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: '"+"',
    exp.Sub: '"-"',
    exp.Mul: '"*"',
    exp.Div: '"/"',
    exp.IntDiv: '"//"',
    exp.Mod: '"%"',
    exp.DPipe: '"||"',
    exp.Like: '"~~"',
}


def sealed(query: exp.Expr) -> str:
    """Return the text of a statement whose functions and operators are those of ``system.main``.

    Examples
    --------
    >>> from duckanon.engine.sql.relations import col, number
    >>> print(sealed(exp.select(exp.Add(this=exp.Sum(this=col("a")), expression=number(1))).from_("t")))
    SELECT SYSTEM.MAIN."+"(system.main.SUM("a"), 1) FROM t
    """
    root = exp.Tuple(expressions=[query.copy()])
    for node in reversed(list(root.walk(bfs=True))):
        found = _sealed(node)
        if found is not None:
            node.replace(found)
    return str(root.expressions[0].sql(dialect=DIALECT))


def _sealed(node: exp.Expr) -> exp.Expr | None:
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        return _text(builtin(operator, node.this, node.expression))
    if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        return _text(builtin('"-"', node.this))
    if isinstance(node, exp.Array):
        return _text(builtin("list_value", *node.expressions))
    if isinstance(node, exp.Struct):
        return _text(builtin("struct_pack", *(_field(pair) for pair in node.expressions)))
    if isinstance(node, exp.Extract):
        return _text(builtin("date_part", exp.Literal.string(node.name.lower()), node.expression))
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return _text(builtin("struct_extract", node.this, exp.Literal.string(node.expression.name)))
    if not isinstance(node, exp.Func) or isinstance(node, exp.Connector):
        return None
    written = node.sql(dialect=DIALECT)
    call = _CALL.match(written)
    if call is None or call[1].upper() in _GRAMMAR or call[1].lower() in {"system", NOT_QUALIFIED}:
        return None
    return exp.Var(this=".".join(("system.main", written)))


def _text(call: exp.Expr) -> exp.Var:
    return exp.Var(this=call.sql(dialect=DIALECT))


def _field(pair: exp.Expr) -> exp.Expr:
    name = exp.Identifier(this=pair.name, quoted=True)
    return exp.Var(this=" := ".join(part.sql(dialect=DIALECT) for part in (name, pair.expression)))


__all__ = ["sealed"]
