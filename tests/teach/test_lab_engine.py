"""The engine in WebAssembly gives the bytes of the native engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from browser import Browser
from lab import with_engine

from simfs import _engine
from simfs.experiments.scene import NEVER
from simfs.scenario import load, to_run_spec
from simfs.scenario.points import expand
from simfs.vocabulary import vocabulary

pytestmark = pytest.mark.slow

SHORT = ("sweep={}", "variants=[]", "measure.warmup=1 ms", "measure.duration=4 ms")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as page:
        with_engine(page)
        yield page


def spec_of(name: str, *settings: str, replication: int = 0) -> str:
    return json.dumps(to_run_spec(expand(load(name, settings))[0], replication))


def asked(browser: Browser, call: str, *arguments: object) -> Any:  # noqa: ANN401
    return browser.eval(f"engine.{call}({', '.join(json.dumps(each) for each in arguments)})")


@pytest.mark.parametrize("kind", vocabulary().lock_kinds)
def test_every_lock_gives_the_same_bytes(browser: Browser, kind: str) -> None:
    for seed, readers in ((1, 0.0), (7, 0.5)):
        settings = (f"workload.lock={kind}", f"workload.readers={readers}", f"measure.seed={seed}")
        spec = spec_of("lock-cycle", *SHORT, *settings)
        assert asked(browser, "run", spec) == _engine.run(spec)


@pytest.mark.parametrize(
    "drawn", ["{exponential: 3 us}", "{lognormal: 3 us, cv: 0.8}", "{gamma: 3 us, cv: 2}"]
)
def test_times_are_drawn_to_the_same_bytes(browser: Browser, drawn: str) -> None:
    """The logarithms and exponentials of both engines agree."""
    spec = spec_of("lock-cycle", *SHORT, f"workload.think={drawn}", "workload.lock=mutex")
    assert asked(browser, "run", spec) == _engine.run(spec)


def test_filesystems_are_refused(browser: Browser) -> None:
    """They are left out: the page has none, and the engine is a quarter as long without them."""
    with pytest.raises(AssertionError, match="built without filesystems"):
        asked(browser, "run", spec_of("compile-24", "sweep={}"))


def test_a_trace_is_the_same(browser: Browser) -> None:
    spec = spec_of("lock-cycle", *SHORT, "workload.lock=mutex")
    for start in (2_000_000_000, NEVER):
        result, in_force, events, longest = _engine.watch(spec, start=start)
        seen = json.loads(browser.eval(f"engine.watch({json.dumps(spec)}, {start}n)"))
        assert seen["result"] == json.loads(result)
        assert [tuple(event) for event in seen["in_force"]] == in_force
        assert [tuple(event) for event in seen["events"]] == events
        assert [tuple(wait) for wait in seen["longest"]] == longest


def test_a_wrong_spec_is_refused_in_words(browser: Browser) -> None:
    spec = json.loads(spec_of("lock-cycle", *SHORT))
    spec["kernel"]["locks"]["lock"] = "mutec"
    with pytest.raises(AssertionError, match="mutec"):
        asked(browser, "run", json.dumps(spec))
    sound = spec_of("lock-cycle", *SHORT)
    assert asked(browser, "run", sound) == _engine.run(sound)


def test_it_is_the_engine_of_this_python(browser: Browser) -> None:
    assert asked(browser, "source") == _engine.__source__
