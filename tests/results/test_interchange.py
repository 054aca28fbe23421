"""Output of real tools: read without loss, mapped to locks, never a traceback, written as the tools do."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from places import ROOT, SAMPLES
from typer.testing import CliRunner

from simfs import interchange
from simfs.cli import app
from simfs.interchange.dataset import About, to_yaml
from simfs.interchange.locks_out import function_of, lockdep_of
from simfs.interchange.reading import Reading, UnreadableError, Waits
from simfs.interchange.symbols import candidates, chains, lock_of, sort, symbols
from simfs.scenario import load
from simfs.scenario.measured.dataset import load_dataset
from simfs.scenario.reading.document import Document

RUNNER = CliRunner()
ENGINE = [ROOT / "engine/src" / part for part in ("filesystems", "memory", "writeback", "lru.rs")]

COUNTS = {
    "btrfs-dump-super.txt": ("btrfs", 1, 53, 0),
    "btrfs-usage-b.txt": ("btrfs", 1, 20, 0),
    "btrfs-usage.txt": ("btrfs", 1, 20, 0),
    "bpftrace-hist-kstack.txt": ("bpftrace", 216, 1, 24),
    "bpftrace-hist.txt": ("bpftrace", 19, 1, 1),
    "dbench-1-ext4.txt": ("dbench", 27, 0, 34),
    "dbench-2-ext4.txt": ("dbench", 26, 0, 34),
    "dbench-2-tmpfs.txt": ("dbench", 26, 0, 34),
    "dbench-4-ext4.txt": ("dbench", 27, 0, 34),
    "dumpe2fs.txt": ("dumpe2fs", 54, 0, 0),
    "fio-job-stonewall.fio": ("fio-job", 11, 0, 0),
    "fio-job.fio": ("fio-job", 18, 1, 0),
    "fio-btrfs.json": ("fio", 278, 0, 12),
    "fio-ext4.json": ("fio", 291, 0, 12),
    "fio-json-in-normal-ext4.txt": ("fio", 269, 31, 7),
    "fio-two-jobs-tmpfs.json": ("fio", 476, 1, 7),
    "fio-xfs.json": ("fio", 291, 0, 12),
    "fs_mark-btrfs.txt": ("fs_mark", 10, 0, 2),
    "fs_mark-ext4.txt": ("fs_mark", 10, 0, 2),
    "fs_mark-sync-xfs.txt": ("fs_mark", 10, 0, 2),
    "fs_mark-tmpfs.txt": ("fs_mark", 10, 0, 2),
    "fs_mark-v-ext4.txt": ("fs_mark", 11, 0, 2),
    "fs_mark-xfs.txt": ("fs_mark", 10, 0, 2),
    "fxmark-tmpfs.log": ("fxmark", 32, 0, 18),
    "klockstat-doc.txt": ("klockstat", 16, 3, 7),
    "klockstat-stacks-doc.txt": ("klockstat", 8, 3, 1),
    "lkp-fxmark-mail.txt": ("lkp", 6, 15, 4),
    "lkp-will-it-scale.txt": ("lkp", 4, 9, 2),
    "lock_stat-doc.txt": ("lock_stat", 36, 0, 5),
    "lock_stat-grep-doc.txt": ("lock_stat", 10, 0, 10),
    "lscpu.txt": ("lscpu", 7, 36, 0),
    "tune2fs-nojournal.txt": ("dumpe2fs", 45, 1, 0),
    "offcputime-doc.txt": ("offcputime", 82, 8, 6),
    "offcputime-folded-doc.txt": ("offcputime", 45, 0, 45),
    "offcputime.txt": ("offcputime", 433, 0, 40),
    "perf-lock-6.1-xfs.txt": ("perf-lock", 82, 8, 81),
    "perf-lock-F-xfs.txt": ("perf-lock", 19, 0, 18),
    "perf-lock-b-doc.txt": ("perf-lock", 5, 0, 4),
    "perf-lock-b-o-doc.txt": ("perf-lock", 5, 5, 4),
    "perf-lock-btrfs.txt": ("perf-lock", 53, 0, 52),
    "perf-lock-ext4.txt": ("perf-lock", 12, 0, 11),
    "perf-lock-l-xfs.txt": ("perf-lock", 11, 0, 10),
    "perf-lock-report-xfs.txt": ("perf-lock", 11, 0, 10),
    "perf-lock-skip2-btrfs.txt": ("perf-lock", 57, 0, 56),
    "perf-lock-skip2-ext4.txt": ("perf-lock", 13, 0, 12),
    "perf-lock-skip2-tmpfs.txt": ("perf-lock", 10, 0, 9),
    "perf-lock-skip2-xfs.txt": ("perf-lock", 19, 0, 18),
    "perf-lock-t-x-xfs.csv": ("perf-lock", 25, 0, 24),
    "perf-lock-t-xfs.txt": ("perf-lock", 25, 0, 24),
    "perf-lock-tmpfs.txt": ("perf-lock", 9, 0, 8),
    "perf-lock-x-ext4.csv": ("perf-lock", 12, 0, 11),
    "perf-lock-x-xfs.csv": ("perf-lock", 19, 0, 18),
    "perf-lock-xfs.txt": ("perf-lock", 19, 0, 18),
    "perf-script-btrfs.txt": ("perf-script", 536, 4, 12),
    "perf-script-ext4.txt": ("perf-script", 536, 4, 8),
    "perf-script-tmpfs.txt": ("perf-script", 390, 6, 6),
    "perf-script-xfs.txt": ("perf-script", 540, 0, 10),
    "will-it-scale-open1.csv": ("will-it-scale", 4, 0, 8),
    "will-it-scale-unlink1.csv": ("will-it-scale", 4, 0, 8),
    "xfs_info-64g.txt": ("xfs_info", 10, 0, 0),
    "xfs_info.txt": ("xfs_info", 10, 0, 0),
}
"""Of every sample: format, lines used, lines skipped, figures or waits."""

NAMES = sorted(COUNTS)


def text_of(name: str) -> str:
    return (SAMPLES / name).read_text("utf-8", "replace")


def read(name: str) -> Reading:
    return interchange.read(text_of(name))


def test_every_sample_is_known() -> None:
    found = {path.name for path in SAMPLES.iterdir() if path.suffix not in (".md", ".sh")}
    assert found == set(COUNTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_read_without_loss(name: str) -> None:
    reading = read(name)
    things = len(reading.figures) or len(reading.waits)
    assert (reading.format, reading.matched, reading.skipped, things) == COUNTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_one_format_alone_knows_a_sample(name: str) -> None:
    assert [f for f in interchange.FORMATS if interchange.load(f).is_mine(text_of(name))] == [COUNTS[name][0]]


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n.startswith("perf-lock") and not n.endswith("6.1-xfs.txt")]
)
def test_each_row_of_perf_is_a_wait_and_adds_up(name: str) -> None:
    rows = [x for x in text_of(name).splitlines() if re.match(r"\s*\S.*\d", x) and not x.startswith("#")]
    rows = rows[3:] if "b-o" in name else rows  # what the benchmark printed
    assert len(read(name).waits) == len(rows)


def test_numbers_are_those_of_the_file() -> None:
    perf, csv = read("perf-lock-xfs.txt").waits[0], read("perf-lock-x-xfs.csv").waits[0]
    exact = [int(x) for x in text_of("perf-lock-x-xfs.csv").splitlines()[1].split(", ")[:3]]
    assert [csv.count, csv.total_ns, csv.max_ns] == exact
    assert perf.total_ns == pytest.approx(csv.total_ns, rel=1e-4)
    assert (perf.where, perf.kind) == (csv.where, csv.kind)

    text = text_of("fio-xfs.json")
    job = json.loads(text[text.index("{\n") :])["jobs"][0]
    rates = {f.metric: f.value for f in read("fio-xfs.json").figures}
    assert rates["io_per_s"] == pytest.approx(job["read"]["iops"] + job["write"]["iops"])
    assert rates["write_p99_latency_us"] == job["write"]["clat_ns"]["percentile"]["99.000000"] / 1e3

    lock = read("lock_stat-doc.txt").waits[0]
    assert (lock.where, lock.kind, lock.count, lock.acquired) == (("&mm->mmap_sem",), "W", 84, 2922365)
    assert lock.total_ns == pytest.approx(16371.53e3)
    klock = read("klockstat-doc.txt").waits[0]
    assert (klock.where, klock.acquired, klock.total_ns, klock.held_ns) == (
        ("psi_avgs_work",),
        5,
        18379,
        74106,
    )


def test_call_chains_tell_locks_that_tables_do_not() -> None:
    whole = sort(read("perf-script-btrfs.txt").waits).by_lock
    assert {"vfs.i_rwsem (directory)", "btrfs.fs tree", "btrfs.delayed_node"} <= set(whole)
    old = next(w for w in read("perf-lock-6.1-xfs.txt").waits if w.where == ("xfs_buf_find_lock",))
    assert lock_of(old) is None
    assert {"xfs.AGI", "xfs.AGF", "xfs.finobt"} <= set(candidates(old))
    chain = Waits(("xfs_buf_find_lock", "xfs_buf_get_map", "xfs_read_agi", "xfs_dialloc"), 1, "semaphore")
    assert lock_of(chain) == "xfs.AGI"


def test_a_chain_means_the_lock_of_which_it_says_most() -> None:
    """A function takes a spinlock of the log itself, and the one of a queue through another function."""
    force = ("xlog_cil_force_seq", "xfs_log_force_seq", "xfs_file_fsync")
    assert lock_of(Waits(force, 1, "spinlock")) == "xfs.xc_push_lock"
    assert lock_of(Waits(("remove_wait_queue", *force), 1, "spinlock")) == "xfs.xc_commit_wait"


def engine_classes() -> set[str]:
    found = set()
    for path in (file for part in ENGINE for file in ([part] if part.is_file() else part.rglob("*.rs"))):
        text = path.read_text("utf-8")
        found |= set(re.findall(r'\("([a-z0-9_]+\.[^"]+)", "\w+\.\w+"\)', text))
        found |= set(re.findall(r'(?:class|mutex)\("([a-z0-9_]+\.[^"]+)"', text))
        found |= set(re.findall(r'LogWait::new\(m, "([^"]+)"', text))
        for names in re.findall(r"\[([^\[\]]*)\]\.map\(\|name\| m\.class", text):
            found |= set(re.findall(r'"([^"]+)"', names))
        found |= {f"btrfs.{name} tree" for name in re.findall(r'Root::new\(m, "([^"]+)"', text)}
        found |= {f"btrfs.{name} tree" for name in re.findall(r'\broot\("([^"]+)", trees', text)}
    return found | {"completion.wait_lock"}


def test_the_map_has_every_lock_of_the_filesystems_and_no_other() -> None:
    assert set(symbols().locks) == engine_classes()


def test_each_class_is_found_by_the_names_it_is_written_with() -> None:
    for lock, known in symbols().locks.items():
        if known.chains:
            kind = next(c.kind for c in chains() if c.lock == lock)
            assert lock_of(Waits((function_of(lock),), 1, kind)) == lock
        if known.lockdep:
            level = " L1" if known.lockdep[0].endswith("-") else ""
            assert lock_of(Waits((lockdep_of(lock + level),), 1)) == lock + level


MUTANTS = int(os.environ.get("SIMFS_MUTANTS", "300"))
JUNK = "0123456789.,:;[]{}()+-%<>|@#\"' \t\nabcXYZ\x00\x1b\u20ac\uffff"


def mutant(text: str, other: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(text) + 1)
        end = min(len(text), at + dice.choice([1, 1, 3, 40, 400]))
        match dice.randrange(6):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + dice.choice(JUNK) * dice.choice([1, 1, 30]) + text[at:]
            case 2:
                text = text[:end] + text[at:]
            case 3:
                text = text[:at] + other[at:]
            case 4:
                text = text[:at] + "".join(dice.choice(JUNK) for _ in text[at:end]) + text[end:]
            case 5:
                text = text[:at]
    return text


@pytest.mark.slow
def test_mutated_samples_are_read_or_refused() -> None:
    dice = random.Random(18)
    about = About("mutant", "mutant.txt", 4, 1000)
    read_well = refused = 0
    for n in range(MUTANTS):
        text = mutant(text_of(NAMES[n % len(NAMES)]), text_of(dice.choice(NAMES)), dice)
        try:
            assert to_yaml(interchange.read(text), about)
            read_well += 1
        except UnreadableError:
            refused += 1
    assert read_well > MUTANTS / 4
    assert refused > 0


@pytest.mark.parametrize("name", ["lock_stat-grep-doc.txt", "perf-lock-l-xfs.txt", "fs_mark-xfs.txt"])
def test_a_line_of_blanks_takes_no_longer_than_others(name: str) -> None:
    began = process_time()
    interchange.read(text_of(name) + "\n" + " " * 100_000 + "x\n")
    assert process_time() - began < 1


def test_what_is_written_is_a_data_set(tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    options = ["--tasks", "8", "--operations", "24000", "--variant", "xfs", "--out", str(out)]
    answer = RUNNER.invoke(app, ["import", str(SAMPLES / "perf-lock-xfs.txt"), *options])
    assert answer.exit_code == 0, answer.stderr
    assert "19 lines used, 0 skipped" in answer.stderr
    assert "of no lock of simfs: spinlock rcu_core" in answer.stderr
    dataset = load_dataset(str(out))
    rows = {row.metric: row for row in dataset.rows}
    assert rows["vfs_i_rwsem_directory_waits_per_operation"].value == pytest.approx(17 / 24000, rel=1e-4)
    assert rows["vfs_i_rwsem_directory_avg_wait_us"].x == 8
    assert dataset.series["perf-lock"].variant == "xfs"


def test_a_file_of_a_layout_is_a_section_of_a_scenario() -> None:
    answer = RUNNER.invoke(app, ["import", "-"], input=text_of("xfs_info.txt"))
    assert answer.stdout == "filesystem: {kind: xfs, size: 2147483648 B, agcount: 2, log_size: 67108864 B}\n"


def test_the_layout_of_xfs_tells_of_larger_directory_blocks_and_of_parent_pointers() -> None:
    """As `xfs_info` of xfsprogs 6.10 and later prints it (recalled); a size of 16 KiB as that of 6.1 does."""
    text = text_of("xfs_info.txt").replace("version 2              bsize=4096   ascii-ci=0, ftype=1", "%s")
    plain = "filesystem: {kind: xfs, size: 2147483648 B, agcount: 2, log_size: 67108864 B"
    large = text % "version 2              bsize=16384  ascii-ci=0, ftype=1, parent=0"
    answer = RUNNER.invoke(app, ["import", "-"], input=large)
    assert answer.stdout == f"{plain}, dirblksize: 16384 B}}\n"
    both = text % "version 2              bsize=16384  ascii-ci=0, ftype=1, parent=1"
    answer = RUNNER.invoke(app, ["import", "-"], input=both)
    assert answer.stdout == f"{plain}, dirblksize: 16384 B, parent: true}}\n"


SCENARIO = {
    "simfs": "1",
    "name": "of-a-tool",
    "title": "A part that was imported",
    "machine": "server-24",
    "kernel": "linux-6.12",
    "filesystem": "{kind: ext4}",
    "workload": "{kind: create_unlink, tasks: 1}",
}
OF_PARTS = [
    name for name in COUNTS if COUNTS[name][0] in ("xfs_info", "dumpe2fs", "btrfs", "lscpu", "fio-job")
]


def scenario_with(section: str) -> str:
    """A scenario in which the section stands instead of its own."""
    others = (f"{key}: {value}\n" for key, value in SCENARIO.items() if not section.startswith(f"{key}:"))
    return "".join(others) + section


@pytest.mark.parametrize("name", OF_PARTS)
def test_imported_sections_make_a_scenario(name: str, tmp_path: Path) -> None:
    (tmp_path / "made.yaml").write_text(scenario_with(read(name).section))
    load(tmp_path / "made.yaml")


def test_a_superblock_of_ext4_becomes_its_section() -> None:
    common = {"kind": "ext4", "orphan_file": "false"}
    journalled = {"size": "2147483648 B", "inode_ratio": "16384 B", "journal": "true"}
    bare = {"size": "67108864 B", "inode_ratio": "8192 B", "journal": "false"}
    assert read("dumpe2fs.txt").facts == common | journalled
    assert read("tune2fs-nojournal.txt").facts == common | bare


def test_lscpu_tells_sums_of_caches_or_single_ones() -> None:
    of_sums = read("lscpu.txt").section
    of_singles = section_of(text_of("lscpu.txt").replace("2 MiB (2 instances)", "1024K"))
    assert "caches: {core: 1048576 B, llc: 33554432 B}" in of_sums
    assert of_singles == of_sums
    assert "cpus_per_llc: 1," in section_of(text_of("lscpu.txt").replace("(1 instance)", "(2 instances)"))


OF_A_TERMINAL = """\
Architecture:             x86_64
  CPU op-mode(s):         32-bit, 64-bit
CPU(s):                   2
Vendor ID:                AuthenticAMD
  Model name:             AMD EPYC
    Thread(s) per core:   1
    Core(s) per socket:   2
    Socket(s):            1
Virtualization features:
  Hypervisor vendor:      KVM
Caches (sum of all):
  L1d:                    64 KiB (2 instances)
  L2:                     2 MiB (2 instances)
  L3:                     32 MiB (1 instance)
NUMA:
  NUMA node(s):           1
"""


def test_lscpu_in_a_terminal_indents_and_says_the_same() -> None:
    assert interchange.read(OF_A_TERMINAL).section == read("lscpu.txt").section


def section_of(text: str) -> str:
    return interchange.read(text).section


def test_json_of_fio_that_breaks_off_is_told_with_its_line() -> None:
    text = text_of("fio-xfs.json")
    with pytest.raises(UnreadableError, match=r"fio's JSON breaks off or is broken in line \d+: "):
        interchange.read(text[: len(text) // 2])


def test_jobs_of_fio_are_variants() -> None:
    assert yaml_of(read("fio-job.fio").section) == {
        "workload": {
            "kind": "fio",
            "block_size": "4 KiB",
            "size": "1 GiB",
            "files": "shared",
            "direct": True,
        },
        "variants": [
            {"name": "readers", "workload": {"rw": "randread", "tasks": 4, "iodepth": 16}},
            {"name": "writers", "workload": {"rw": "randwrite", "tasks": 2, "fsync": 32}},
        ],
    }
    assert read("fio-job.fio").facts["not in simfs"] == "thinktime"
    assert "side by side" in read("fio-job.fio").facts
    assert "side by side" not in read("fio-job-stonewall.fio").facts


def test_what_fio_says_and_simfs_cannot_is_listed_not_guessed() -> None:
    text = text_of("fio-job.fio").replace("bs=4k", "bs=4k,64k") + "[trims]\nrw=trim\n"
    reading = interchange.read(text)
    assert reading.facts["not in simfs"] == "bs, thinktime"
    assert reading.facts["no such load in simfs"] == "trims"
    assert "block_size" not in reading.section
    assert reading.skipped == 2
    text = text_of("fio-job.fio").replace("numjobs=4", "numjobs=four")
    assert interchange.read(text).facts["not in simfs"] == "numjobs, thinktime"


def yaml_of(text: str) -> dict[str, Any]:
    return Document.parse(text, "section").data


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("root:x:0:0\n", [], "output of no tool"),
        (
            " contended   total wait     max wait     avg wait         type   caller\n",
            ["--tasks", "2"],
            "nothing of it",
        ),
        (text_of("perf-lock-xfs.txt"), [], "give --tasks"),
        (text_of("perf-lock-xfs.txt"), ["--format", "perf-lok"], "did you mean 'perf-lock'?"),
        (text_of("perf-lock-xfs.txt"), ["--format", "dbench"], "none of its"),
    ],
)
def test_what_cannot_be_used_is_bad_input(
    content: str, options: list[str], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.txt"
    path.write_text(content, "utf-8")
    answer = RUNNER.invoke(app, ["import", str(path), *options])
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert said in answer.stderr.replace("\n", " ")


def test_no_file_is_bad_input(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", "a\x00b"):
        assert RUNNER.invoke(app, ["import", str(path)]).exit_code == 2
