"""The page as one file: form, engine, player and charts. It is opened from a disk as well as from a server."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html import escape
from pathlib import Path

from simfs.machine.locks.policy import POLICIES
from simfs.reports.lab.templates import CPUS, kit
from simfs.reports.timeline import html as timeline_html
from simfs.reports.timeline.figure import LOOKS

_HERE = Path(__file__).parent
_WEB = _HERE.parent / "web"
BUILT = _HERE.parents[2] / "engine/target/wasm32-unknown-unknown/web/simfs_web.wasm"
"""Where cargo puts the engine in a checkout."""
PAGE = ("follow", "scene", "spec", "pool", "lab")
WORKER = ("engine", "worker")
"""The modules of the page and of its threads, each after those that it imports."""

NUMBERS = (
    ("tasks", "tasks", "16", 'min="1" max="96" step="1"'),
    ("hold", "hold the lock for (us, mean)", "5", 'min="0.05" max="10000" step="any"'),
    ("think", "think between for (us, mean)", "50", 'min="0" max="100000" step="any"'),
    ("readers", "readers (% of cycles)", "0", 'min="0" max="100" step="any"'),
    ("seed", "seed", "1", 'min="0" max="4294967295" step="1"'),
)


def page(engine: bytes) -> str:
    """The document, with an engine made by `just web`."""
    packed = base64.b64encode(gzip.compress(engine, mtime=0)).decode()
    known = json.dumps(kit(), separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><title>The lock lab</title><link rel="icon" href="data:,">'
        f"<style>{timeline_html.STYLE}{_styles()}</style>"
        f"<script>{_read(_WEB / 'uplot.js')}</script><script>{timeline_html.SCRIPT}</script>\n"
        f'<script type="application/json" id="kit">{known}</script>'
        f'<script type="text/plain" id="worker">{bundle(WORKER)}</script>'
        f'<script type="text/plain" id="engine">{packed}</script></head>\n'
        f"<body>{_read(_HERE / 'body.html').format(form=_form(), player=_player())}"
        f"<script>{_read(_WEB / 'report.js')}</script>"
        f'<script type="module">{bundle(PAGE)}</script></body></html>\n'
    )


def _form() -> str:
    locks = "".join(
        f'<option value="{kind}"{" selected" if kind == "ticket" else ""}>{kind}</option>'
        for kind in POLICIES
    )
    cpus = "".join(f"<option{' selected' if n == 8 else ''}>{n}</option>" for n in CPUS)
    numbers = "".join(
        f'<label>{escape(said)}<input type="number" name="{name}" value="{value}" required {limits}></label>'
        for name, said, value, limits in NUMBERS
    )
    times = "".join(f"<option>{word}</option>" for word in ("exponential", "constant"))
    lengths = "".join(f"<option{' selected' if ms == 20 else ''}>{ms}</option>" for ms in (5, 20, 100, 200))
    return (
        f'<form id="choice"><label>lock<select name="lock">{locks}</select></label>{numbers}'
        f'<label>CPUs<select name="cpus">{cpus}</select></label>'
        f'<label>times are<select name="times">{times}</select></label>'
        f'<label>simulated time (ms)<select name="duration">{lengths}</select></label>'
        '<div class="acts"><button type="button" id="run">Run</button>'
        '<button type="button" id="curve">Draw the curve</button>'
        '<button type="button" id="stop" disabled>Stop</button></div></form>'
    )


def _styles() -> str:
    own = (_WEB / f"{name}.css" for name in ("uplot", "colours", "charts", "report"))
    return "".join(map(_read, (*own, _HERE / "lab.css")))


def _player() -> str:
    return timeline_html.frame("line-player", "", "", timeline_html.legend(LOOKS))


def bundle(names: tuple[str, ...]) -> str:
    """Modules as one script: a page that is opened from a disk may import nothing."""
    texts = [_read(_HERE / f"{name}.js") for name in names]
    return "\n".join(
        re.sub(r"^export ", "", re.sub(r"^import .*\n", "", text, flags=re.M), flags=re.M) for text in texts
    )


def _read(file: Path) -> str:
    return file.read_text("utf-8")
