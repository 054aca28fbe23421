"""What tests of the lock laboratory share: the engine as WebAssembly, in a browser."""

from __future__ import annotations

import base64
from importlib import import_module
from pathlib import Path

import pytest
from browser import Browser

from simfs.reports.lab import page

FACE = Path(page.__file__).with_name("engine.js")


def built() -> bytes:
    """The engine, from the sources that the native one is built from."""
    if not page.BUILT.exists():
        pytest.skip("needs the engine as WebAssembly: just web")
    code = page.BUILT.read_bytes()
    if import_module("simfs._engine").__source__.encode() not in code:
        pytest.skip("needs the engine as WebAssembly from these sources: just web")
    return code


def with_engine(browser: Browser) -> None:
    """Put the engine into an empty page, as `engine`."""
    code, face = (base64.b64encode(each).decode() for each in (built(), FACE.read_bytes()))
    browser.eval(
        f"(async () => {{ const {{Engine}} = await import('data:text/javascript;base64,{face}');"
        f" const code = Uint8Array.from(atob('{code}'), (c) => c.charCodeAt(0));"
        " globalThis.engine = await Engine.of(await WebAssembly.compile(code)); })()"
    )
