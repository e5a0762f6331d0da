"""HTML from nested calls, in which every text is escaped unless it was made here."""

from __future__ import annotations

import html


class Markup(str):
    """HTML that was made here; any other text is escaped when it is put into an element."""

    __slots__ = ()


def shown(value: object) -> Markup:
    r"""Return a text as HTML shows it: nothing in it is markup, and control characters are visible.

    Examples
    --------
    >>> print(shown("<b> & 'c'"))
    &lt;b&gt; &amp; &#x27;c&#x27;
    >>> print(shown("two\nlines"))
    two\nlines
    """
    if isinstance(value, Markup):
        return value
    # Line breaks would be lost, and marks that turn the direction of text could make a name look like another.
    visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    return Markup(html.escape(visible))


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element; of attributes a trailing underscore is dropped, others are hyphens, and None leaves one out.

    Examples
    --------
    >>> print(element("a", "x < y", class_="k", aria_label="<"))
    <a class="k" aria-label="&lt;">x &lt; y</a>
    >>> print(element("rect", width="5%"))
    <rect width="5%"></rect>
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{shown(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*parts: object) -> Markup:
    """Return parts one after another, each escaped unless it is markup; None is left out."""
    return Markup("".join(shown(p) for p in parts if p is not None))
