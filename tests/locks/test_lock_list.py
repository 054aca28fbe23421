"""`simfs locks` lists what both machines have."""

from __future__ import annotations

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.commands.locks import HEADINGS
from simfs.machine.locks.kinds import KINDS
from simfs.machine.locks.policy import ALIASES, AXES, POLICIES
from simfs.vocabulary import vocabulary

RUNNER = CliRunner()


def shown(form: str) -> str:
    answer = RUNNER.invoke(app, ["locks", "--format", form])
    assert answer.exit_code == 0
    return answer.stdout


def test_every_lock_of_the_native_machine_is_listed_and_no_other() -> None:
    assert {*POLICIES, *ALIASES} == set(vocabulary().lock_kinds)


def test_every_lock_of_the_reference_machine_is_listed() -> None:
    assert set(KINDS) <= {*POLICIES, *ALIASES}
    for alias, kind in ALIASES.items():
        assert KINDS[alias] is KINDS[kind]


@pytest.mark.slow
def test_the_three_forms_say_the_same() -> None:
    as_json = json.loads(shown("json"))
    assert [row["lock"] for row in as_json] == list(POLICIES)
    assert list(csv.DictReader(io.StringIO(shown("csv")))) == as_json
    assert set(HEADINGS) == set(AXES)
    assert all(name in shown("text") for name in POLICIES)


def test_who_grants_never_lets_anybody_steal() -> None:
    for policy in POLICIES.values():
        assert (policy.handoff == "always") == (policy.grant == "grant")


def test_whether_a_lock_spins_is_what_its_class_says() -> None:
    for name, kind in KINDS.items():
        policy = POLICIES[ALIASES.get(name, name)]
        assert kind.spins == (policy.context == "preemption off"), name
