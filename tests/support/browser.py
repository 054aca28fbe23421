"""A headless chromium over a pipe (Chrome DevTools Protocol): open a page, click as a user does, look at it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


def chromium() -> str:
    """Where the browser is; skips the test where there is none."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no chromium on this machine")
    return found


class Browser:
    """One page of a browser; errors that the page throws are in `wrong`."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 900) -> None:
        self.wrong: list[str] = []
        command = [chromium(), *OPTIONS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        theirs, self._out = os.pipe()
        self._in, back = os.pipe()
        # The protocol reads descriptor 3 and writes descriptor 4.
        shell = f'exec "$@" 3<&{theirs} 4>&{back}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command], pass_fds=(theirs, back), stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(back)
        self._number, self._rest, self._session = 0, b"", ""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._ask("Page.enable")
        self._ask("Runtime.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)

    def open(self, url: str) -> None:
        """Go to a page and wait until it has loaded."""
        self._ask("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def eval(self, script: str) -> Any:  # noqa: ANN401
        """The value of an expression; of a promise, what it comes to."""
        said = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in said:
            raise AssertionError(json.dumps(said["exceptionDetails"])[:2000])
        return said["result"].get("value")

    def wait(self, script: str, seconds: float = 60) -> None:
        """Until an expression is true."""
        until = time.monotonic() + seconds
        while not self.eval(f"!!({script})"):
            assert time.monotonic() < until, f"not within {seconds} s: {script}; errors: {self.wrong}"
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of an element."""
        find = f"document.querySelector({json.dumps(selector)})"
        box = self.eval(
            f"(() => {{ const e = {find}; e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def choose(self, selector: str, value: str) -> None:
        """Give an input or a select its value, and tell the page."""
        self.eval(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
            " for (const n of ['input', 'change']) e.dispatchEvent(new Event(n, {bubbles: true})); })()"
        )

    def photograph(self, file: Path, *, whole: bool = True) -> Path:
        """A picture of the page (PNG)."""
        shot = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))
        return file

    def _ask(self, method: str, **params: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self._out, text) :]
        while True:
            said = self._read()
            if said.get("id") == self._number:
                assert "error" not in said, said["error"]
                result: dict[str, Any] = said["result"]
                return result
            if said.get("method") == "Runtime.exceptionThrown":
                self.wrong.append(json.dumps(said["params"]["exceptionDetails"])[:1000])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._in, 1 << 20)
            assert part, "the browser is gone"
            self._rest += part
        one, _, self._rest = self._rest.partition(b"\0")
        said: dict[str, Any] = json.loads(one)
        return said
