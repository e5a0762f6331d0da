"""The look of the page: one style sheet, light and dark, screen and paper, with the fonts of the reader's system."""

from __future__ import annotations

_LIGHT = {
    "page": "#f7f6f3",
    "card": "#ffffff",
    "ink": "#16181d",
    "soft": "#4f5560",
    "pale": "#767c87",
    "rule": "#e2e0da",
    "accent": "#2769c9",
    "tint": "#cfe0f8",
    "track": "#ecebe6",
    "good": "#12703a",
    "good-tint": "#e4f4ea",
    "warn": "#855400",
    "warn-tint": "#fcf0d6",
    "bad": "#b3261e",
    "bad-tint": "#fce8e6",
}
_DARK = {
    "page": "#131417",
    "card": "#1c1e22",
    "ink": "#f0f0ec",
    "soft": "#bcc0c8",
    "pale": "#8f949e",
    "rule": "#30333a",
    "accent": "#74a8f5",
    "tint": "#2a4266",
    "track": "#2b2e34",
    "good": "#69cf95",
    "good-tint": "#16301f",
    "warn": "#e8b955",
    "warn-tint": "#352a10",
    "bad": "#f4988c",
    "bad-tint": "#40201c",
}

_RULES = """
* { box-sizing: border-box; }
html { font-size: 15px; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI",
  Roboto, "Noto Sans", "Liberation Sans", sans-serif; overflow-wrap: anywhere; }
main { max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; letter-spacing: -.01em; }
h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
h3 { font-size: .85rem; margin: 1rem 0 .35rem; color: var(--soft); font-weight: 600; }
p { margin: 0 0 .6rem; }
ul { margin: 0; padding-left: 1.1rem; }
li { margin: 0 0 .3rem; }
li::marker { color: var(--pale); }
.eyebrow { color: var(--pale); font-size: .8rem; letter-spacing: .06em; text-transform: uppercase; margin: 0 0 .35rem; }
.facts { color: var(--soft); font-size: .88rem; margin: 0 0 1.1rem; }
.facts span:not(:last-child)::after { content: "\\00a0\\00b7\\00a0 "; color: var(--pale); }
.seeded { background: var(--bad); color: var(--card); font-weight: 700; font-size: 1.15rem; text-align: center;
  padding: .8rem 1rem; border-radius: 8px; margin: 0 0 1.25rem; text-transform: uppercase; letter-spacing: .04em; }
.verdict { display: flex; gap: .8rem; align-items: flex-start; border-radius: 10px; padding: .85rem 1rem;
  margin: 0 0 1rem; background: var(--good-tint); color: var(--good); }
.verdict.warn { background: var(--warn-tint); color: var(--warn); }
.verdict.bad { background: var(--bad-tint); color: var(--bad); }
.verdict .sign { flex: none; font-size: 1.35rem; line-height: 1.3; font-weight: 700; }
.verdict strong { display: block; font-size: 1.1rem; line-height: 1.4; }
.verdict span { color: var(--ink); font-size: .92rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.4rem, 1fr)); gap: .6rem; margin: 0 0 1rem; }
.tile { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: .65rem .8rem; }
.tile b { display: block; font-size: 1.45rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; }
.tile span { display: block; color: var(--soft); font-size: .8rem; line-height: 1.35; }
.tile span.name { color: var(--pale); }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 1rem 1.1rem 1.05rem;
  margin: 0 0 1rem; min-width: 0; }
section.warn { border-color: var(--warn); }
section.warn h2 { color: var(--warn); }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1rem; align-items: stretch; }
.scroll { overflow-x: auto; }
.scroll + .scroll, .aside + .scroll { margin-top: 1rem; }
.scroll + p, table + p { margin-top: .8rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .32rem .7rem .32rem 0; vertical-align: baseline;
  border-bottom: 1px solid var(--rule); overflow-wrap: break-word; }
th:last-child, td:last-child { padding-right: 0; }
tr:last-child td { border-bottom: 0; }
th { color: var(--pale); font-weight: 500; font-size: .8rem; }
.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.drawn { width: 28%; min-width: 4rem; vertical-align: middle; }
td.name { min-width: 8.6rem; overflow-wrap: anywhere; }
.yes { color: var(--good); font-weight: 600; white-space: nowrap; }
.no { color: var(--bad); font-weight: 700; white-space: nowrap; }
.aside { color: var(--soft); font-size: .86rem; margin: .5rem 0 0; }
svg { display: block; width: 100%; overflow: visible; }
svg.bar { height: 8px; }
svg.sizes { height: 80px; margin: .25rem 0 .5rem; }
svg.line { height: auto; margin: .2rem 0 .15rem; }
.track { fill: var(--track); }
.fill { fill: var(--accent); }
.axis, .tick { stroke: var(--rule); stroke-width: 1; }
.tick-label { fill: var(--pale); font-size: .73rem; text-anchor: middle; }
.whisker { stroke: var(--accent); stroke-width: 1.5; }
.box { fill: var(--tint); stroke: var(--accent); stroke-width: 1.5; }
.median { stroke: var(--accent); stroke-width: 3; }
.least { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 3 3; }
.least-label { fill: var(--soft); font-size: .73rem; }
.trend { fill: none; stroke: var(--accent); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.beside { fill: none; stroke: var(--pale); stroke-width: 1.5; stroke-dasharray: 2 3; }
.trend-alone { fill: var(--accent); }
.beside-alone { fill: var(--pale); }
.now { fill: var(--accent); stroke: var(--card); stroke-width: 2; }
.then { fill: transparent; }
.then:hover { fill: var(--tint); }
.failed { fill: none; stroke: var(--bad); stroke-width: 2; stroke-linecap: round; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.6rem, 1fr)); gap: .9rem 1.4rem; }
.chart b { font-size: 1.05rem; font-weight: 650; white-space: nowrap; }
.chart .what { color: var(--soft); font-size: .82rem; display: block; }
.chart .top { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 0 .5rem; }
.chart .range { color: var(--pale); font-size: .74rem; white-space: nowrap; }
.chart .span { color: var(--pale); font-size: .74rem; display: flex; justify-content: space-between; gap: .5rem; }
.key { display: inline-block; width: 1.1em; border-top: 2px dashed var(--pale); vertical-align: middle; }
pre { background: var(--page); border: 1px solid var(--rule); border-radius: 6px; padding: .5rem .7rem;
  margin: 0 0 .8rem; white-space: pre-wrap; font: .84rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas,
  "Liberation Mono", monospace; }
footer { color: var(--pale); font-size: .82rem; margin: 1.2rem 0 0; }
@media (max-width: 46rem) {
  main { padding: 1.25rem .8rem 2rem; }
  .pair { grid-template-columns: minmax(0, 1fr); }
  section { padding: .85rem .8rem .9rem; }
  h1 { font-size: 1.45rem; }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .charts { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  table.wide { min-width: 36rem; }
}
@page { size: A4; margin: 12mm; }
@media print {
  html { font-size: 8.2pt; }
  body { background: #fff; line-height: 1.36; print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  section, .tile { break-inside: avoid; padding: .55rem .75rem; margin-bottom: .55rem; }
  .tile { margin: 0; }
  .tiles { margin-bottom: .55rem; grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); }
  .pair { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 .55rem; }
  .charts { grid-template-columns: repeat(5, minmax(0, 1fr)); gap: .4rem .8rem; }
  h2 { margin-bottom: .3rem; }
  .verdict { padding: .5rem .75rem; margin-bottom: .55rem; }
  .facts { margin-bottom: .6rem; }
  th, td { padding-top: .16rem; padding-bottom: .16rem; }
  pre { margin-bottom: .45rem; padding: .3rem .5rem; }
  li { margin-bottom: .12rem; }
  .scroll + .scroll, .aside + .scroll, .scroll + p, table + p { margin-top: .5rem; }
  svg.sizes { margin: .2rem 0 0; }
}
"""


def _tokens(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


STYLE = (
    f":root {{ color-scheme: light dark; {_tokens(_LIGHT)} }}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_tokens(_DARK)} }} }}"
    f"{_RULES}"
)
