"""CSV by RFC 4180 as its text says it, in which an empty text in quotes is a text and nothing at all is NULL."""

from __future__ import annotations

from itertools import chain

_END = "\r\n"


def rows_of(content: str) -> list[list[str | None]]:
    """Return the fields of all lines, the header included."""
    found: list[list[str | None]] = [[]]
    at = 0
    while at < len(content):
        if content[at] == '"':
            parts = []
            at += 1
            while True:
                end = content.index('"', at)
                parts.append(content[at:end])
                at = end + 1
                if content[at : at + 1] != '"':
                    break
                parts.append('"')
                at += 1
            found[-1].append("".join(parts))
        else:
            ends = [content.find(mark, at) for mark in (",", _END)]
            end = min(chain((e for e in ends if e >= 0), [len(content)]))
            found[-1].append(content[at:end] or None)
            at = end
        if content.startswith(",", at):
            at += 1
            if at == len(content) or content.startswith(_END, at):
                found[-1].append(None)
        if content.startswith(_END, at):
            at += 2
            if at < len(content):
                found.append([])
        elif at == len(content):
            break
    return found
