"""Scenarios to explore in a browser, served on this computer to nobody else: `simfs lab`.

A page of another site could ask as well, or a name server could lead it here: every request must bring the token that
the command prints, and name this computer as its host.
"""

from __future__ import annotations

import json
import secrets
import threading
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, quote, urlsplit

import simfs
from simfs.reports.web.explorer import Explorer
from simfs.scenario import ScenarioError
from simfs.scenario import load as load_scenario
from simfs.scenario.paths import SCENARIOS, names

_HERE = Path(__file__).parent
_SCRIPTS = ("uplot.js", "report.js", "explore.js", "gallery.js")
_STYLES = ("uplot.css", "colours.css", "charts.css", "report.css", "explore.css")
LONGEST = 10_000
"""Bytes of a request at most."""


class Gallery(ThreadingHTTPServer):
    """The server; bound to 127.0.0.1, on any free port if `port` is 0. Raises OSError where the port is taken."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Request)
        self.token = secrets.token_urlsafe(16)
        self._explorers: dict[str, Explorer] = {}
        self._one = threading.Lock()

    @property
    def url(self) -> str:
        """Where it is, with the token."""
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"

    def explorer(self, name: str) -> Explorer:
        """The explorer of a shipped scenario along all that it sweeps. Raises ValueError for one that there is not."""
        if name not in names(SCENARIOS):
            raise ValueError(f"there is no scenario '{name}'")
        if name not in self._explorers:
            question = simfs.load(name)
            keys = [key for key, values in question.scenario.sweep.items() if len(values) > 1]
            self._explorers[name] = Explorer(question, keys)
        return self._explorers[name]

    def look(self, name: str, at: list[int]) -> dict[str, Any]:
        """What is seen there; one at a time, since a run takes all CPUs."""
        with self._one:
            try:
                return self.explorer(name).look(at)
            except (ValueError, ScenarioError) as problem:
                return {"problem": str(problem)}


def listed() -> list[tuple[str, str, str]]:
    """Name, title and question of the scenarios that sweep something and need no file of Python."""
    found = []
    for name in names(SCENARIOS):
        scenario = load_scenario(name)
        if any(len(values) > 1 for values in scenario.sweep.values()):
            found.append((name, scenario.title, scenario.question))
    return found


class _Request(BaseHTTPRequestHandler):
    server_version = "simfs"

    @property
    def gallery(self) -> Gallery:
        return cast(Gallery, self.server)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if not self._known(asked.get("token", "")):
            self._send(403, "text/plain", "Open the address that simfs lab printed.")
        elif parts.path == "/":
            self._send(200, "text/html", _index(self.gallery.token))
        elif parts.path == "/explore":
            self._explore(asked.get("name", ""))
        else:
            self._send(404, "text/plain", "There is no such page.")

    def do_POST(self) -> None:
        stated = self.headers.get("Content-Length") or "0"
        length = int(stated) if stated.isdecimal() else LONGEST + 1
        if not self._known(self.headers.get("X-Simfs-Token", "")) or length > LONGEST:
            self._send(403, "text/plain", "Open the address that simfs lab printed.")
            return
        try:
            asked = json.loads(self.rfile.read(length))
            name, at = str(asked["name"]), list(asked["at"])
        except (ValueError, TypeError, KeyError):
            self._send(400, "text/plain", "Not understood.")
            return
        self._send(200, "application/json", json.dumps(self.gallery.look(name, at), allow_nan=False))

    def _explore(self, name: str) -> None:
        try:
            explorer = self.gallery.explorer(name)
        except (ValueError, ScenarioError) as problem:
            self._send(404, "text/plain", str(problem))
            return
        start = {
            "name": name,
            "factors": explorer.factors(),
            "at": explorer.start(),
            "token": self.gallery.token,
        }
        known = json.dumps(start).replace("<", "\\u003c")
        scenario = explorer.question.scenario
        body = (
            f'<header><p class="name"><a href="/?token={self.gallery.token}">All scenarios</a></p>'
            f'<h1>{escape(scenario.title or name)}</h1><p class="question">{escape(scenario.question)}</p></header>'
            f'<main id="here"></main><script type="application/json" id="start">{known}</script>'
            f"<script>{_read(*_SCRIPTS)}</script>"
        )
        self._send(200, "text/html", _page(scenario.title or name, body))

    def _known(self, token: str) -> bool:
        port = self.gallery.server_port
        here = self.headers.get("Host") in (f"127.0.0.1:{port}", f"localhost:{port}")
        return here and secrets.compare_digest(token.encode(), self.gallery.token.encode())

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(data))),
            ("Referrer-Policy", "no-referrer"),
            ("X-Frame-Options", "DENY"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the terminal is the user's."""


def _index(token: str) -> str:
    rows = "".join(
        f'<li><h3><a href="/explore?name={quote(name)}&amp;token={token}">{escape(title or name)}</a></h3>'
        f'<p class="name">{escape(name)}</p><p>{escape(question)}</p></li>'
        for name, title, question in listed()
    )
    head = "<header><h1>simfs lab</h1><p>Scenarios to explore; runs are quick ones.</p></header>"
    return _page("simfs lab", f'{head}<ul class="gallery">{rows}</ul>')


def _page(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_read(*_STYLES)}</style></head><body>{body}</body></html>\n"
    )


def _read(*names: str) -> str:
    return "\n".join((_HERE / name).read_text("utf-8") for name in names)
