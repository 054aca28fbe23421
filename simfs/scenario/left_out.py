"""What the models leave out, by `models/left-out.yaml`, and which of it concerns a scenario."""

from __future__ import annotations

from functools import cache

from pydantic import Field, ValidationError

from simfs.scenario.models.timeline import Release, Version, dotted, parse_version
from simfs.scenario.paths import MODELS
from simfs.scenario.points import Point
from simfs.scenario.problems import ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.reading.refusals import problems_of
from simfs.scenario.run_spec import to_run_spec
from simfs.scenario.sections.section import Section

FILE = MODELS / "left-out.yaml"


class LeftOut(Section):
    """Something that is not modelled, why, and where it can matter: everywhere, unless conditions say otherwise."""

    what: str
    why: str
    filesystem: tuple[str, ...] = Field((), description="kinds")
    workload: tuple[str, ...] = Field((), description="kinds")
    since: Version | None = Field(None, description="of the kernel")
    before: Version | None = Field(None, description="of the kernel")
    device: bool = Field(False, description="the filesystem is on a device")
    smt: bool = Field(False, description="the machine has hyper-threads")
    caches: bool = Field(False, description="it has more than one last-level cache")

    def concerns(self, point: Point) -> bool:
        """Whether it can matter for a point."""
        use, spec = point.scenario, to_run_spec(point, 0)
        machine, version = spec["machine"], _version_of(use.kernel.profile)
        return (
            (not self.filesystem or use.filesystem.kind in self.filesystem)
            and (not self.workload or use.workload.kind in self.workload)
            and (not self.device or bool(spec["device"]))
            and (not self.smt or machine["cpus_per_core"] > 1)
            and (not self.caches or machine["cpus_per_llc"] < machine["cpus"])
            and (version is None or self._is_of(version))
        )

    def _is_of(self, version: Release) -> bool:
        return (self.since is None or version >= self.since) and (
            self.before is None or version < self.before
        )

    @property
    def where(self) -> str:
        """The conditions in words; empty where there are none."""
        parts = [", ".join((*self.filesystem, *self.workload))]
        parts += [f"{word} {dotted(version)}" for word, version in self._versions if version]
        words = {"devices": self.device, "hyper-threads": self.smt, "several caches": self.caches}
        return "; ".join(part for part in (*parts, *(word for word, holds in words.items() if holds)) if part)

    @property
    def _versions(self) -> tuple[tuple[str, Release | None], ...]:
        return ("since", self.since), ("before", self.before)


def _version_of(profile: str) -> Release | None:
    """The version in a kernel's name; None for a profile of another name, which may be any."""
    try:
        return parse_version(profile.removeprefix("linux-"))
    except ValueError:
        return None


class _List(Section):
    left_out: tuple[LeftOut, ...]


@cache
def left_out() -> tuple[LeftOut, ...]:
    """All of it. Raises `ScenarioError` for a file with something wrong in it."""
    document = Document.read(FILE)
    try:
        return _List.model_validate(document.data).left_out
    except ValidationError as error:
        raise ScenarioError(problems_of(error, document)) from None
