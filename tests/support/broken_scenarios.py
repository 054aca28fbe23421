"""Scenarios that are broken in one place each, and what is said of them."""

from __future__ import annotations

from typing import NamedTuple

BASE = """\
simfs: 1
name: base
title: Base
machine: {profile: server-24, cpus: 4}
kernel: linux-6.11
filesystem: {kind: xfs, size: 8 GiB, agcount: 4}
locks: {xfs.buffer: rwsem}
workload:
  kind: compile
  tasks: 2
  directories: shared
  user_cpu: 15 ms
variants:
  - {name: a, title: A}
  - {name: b, filesystem: {kind: ext4}}
sweep:
  workload.tasks: [1, 2]
measure: {warmup: auto, duration: 1 s, replications: 3, precision: 5 %, confidence: 95 %, seed: 1}
measured:
  dataset: seed-xfs-compile-2024
  variants: {ext4 one directory: b, xfs one directory: a}
calibrate:
  - parameter: workload.user_cpu
    bounds: [1 ms, 100 ms]
    rows: [{series: ext4 one directory}]
"""


class Case(NamedTuple):
    """`old` in the base becomes `new`; the message must begin with `place` and hold `says`."""

    old: str
    new: str
    place: str
    says: str


CASES = [
    # versions and names
    Case("simfs: 1", "simfs: 2", "1:8", "version 2 is not supported"),
    Case("simfs: 1", "simfs: 0", "1:8", "not supported"),
    Case("simfs: 1", "simfs: one", "1:8", "not one of 1"),
    Case("simfs: 1", "simfs: 1.5", "1:8", "not one of 1"),
    Case("simfs: 1\n", "", "1:1", "key 'simfs' is missing"),
    Case("simfs: 1", "simf: 1", "1:1", "unknown key 'simf' (did you mean 'simfs'?)"),
    Case("name: base\n", "", "1:1", "key 'name' is missing"),
    Case("name: base", "name: ''", "2:7", "name"),
    Case("name: base", "name: a/b", "2:7", "letters, digits and . _ + - only"),
    Case("{name: a, title: A}", "{name: a b, title: A}", "14:12", "(did you mean 'a-b'?)"),
    Case("name: base", "name: 3", "2:7", "valid string"),
    Case("name: base", "name: [a]", "2:7", "valid string"),
    Case("name: base", "name:", "2", "got nothing"),
    Case("title: Base", "titel: Base", "3:1", "did you mean 'title'?"),
    Case("title: Base", "title: ''", "3:8", "at least 1 character"),
    Case("title: Base", "title: {}", "3:8", "valid string"),
    # YAML itself
    Case("title: Base", "title: Base\ntitle: Again", "4:1", "duplicate key 'title'"),
    Case("  tasks: 2", "  tasks: 2\n  tasks: 3", "11:3", "duplicate key 'tasks'"),
    Case("title: Base", "title: [Base", "4:", "not valid YAML"),
    Case("title: Base", "title: 'Base", "", "not valid YAML"),
    Case("title: Base", "\ttitle: Base", "3:1", "not valid YAML: a tab; YAML is indented with spaces"),
    Case("title: Base", "title: Base: more", "3:12", "not valid YAML: a ': ' where none may be"),
    Case("title: Base", "title: *unknown", "3:8", "undefined alias"),
    Case("title: Base", "title: !python/object:os.system x", "3:8", "tag"),
    Case("title: Base", "title: !secret x", "3:8", "not supported"),
    Case("title: Base", "? [a, b]\n: c", "3:3", "plain word"),
    Case("title: Base", "<<: {title: Base}", "3:1", "merge keys"),
    Case("title: Base", "title: Base\n---\nname: other", "4:1", "not valid YAML: a second document"),
    Case("title: Base", "title: Base\x07", "3:12", "control character"),
    Case("title: Base", 'title: "\\xZZ"', "3:", "not valid YAML"),
    Case("title: Base", 'title: "\\ud800"', "3:8", "which cannot be printed"),
    Case("title: Base", "title: &a [*a]", "3:", "nested more than"),
    Case("title: Base", "title: Base\nquestion: " + "[" * 200_000 + "]" * 200_000, "", "nested more than"),
    Case("title: Base", "title: Base\nquestion: " + "[" * 40 + "]" * 40, "4:", "nested more than"),
    Case("title: Base", "title: Base\nquestion: " + "[" * 9000, "", "nested more than"),
    Case("simfs: 1", ": 1\nquestion: " + "[" * 900 + "\nsimfs: 1", "1:1", "nested more than"),
    Case("simfs: 1", "%YAML 9.9\n---\nsimfs: 1", "", "not valid YAML"),
    Case(BASE, "", "1:1", "is empty"),
    Case(BASE, "# nothing but a comment\n", "1:1", "is empty"),
    Case(BASE, "- a\n- b\n", "1:1", "expected a mapping (key: value), got a list"),
    Case(BASE, "just words\n", "1:1", "expected a mapping"),
    Case(BASE, "42\n", "1:1", "expected a mapping"),
    Case(BASE, "null\n", "1:1", "expected a mapping"),
    Case(BASE, "{}\n", "1:1", "key 'workload' is missing"),
    # machine and kernel
    Case("profile: server-24", "profile: server-42", "4:20", "did you mean 'server-24'?"),
    Case("profile: server-24, ", "", "4:1", "key 'profile' is missing"),
    Case("cpus: 4", "cpus: 0", "4:37", "greater than or equal to 1, got 0"),
    Case("cpus: 4", "cpus: -3", "4:37", "greater than or equal to 1"),
    Case("cpus: 4", "cpus: 1025", "4:37", "less than or equal to 1024"),
    Case("cpus: 4", "cpus: four", "4:37", "valid integer"),
    Case("cpus: 4", "cpus: '4'", "4:37", "valid integer"),
    Case("cpus: 4", "cpus: 4.5", "4:37", "valid integer"),
    Case("cpus: 4", "cpus: true", "4:37", "valid integer"),
    Case("cpus: 4", "cpus: .nan", "4:37", "not a number"),
    Case("cpus: 4", "cpus: .inf", "4:37", "not a number"),
    Case("cpus: 4", "cpus: " + "9" * 5000, "4:37", "a huge number"),
    Case("cpus: 4", "cpus: 1e999", "4:37", "not a number"),
    Case("cpus: 4", "cpu: 4", "4:31", "did you mean 'cpus'?"),
    Case("cpus: 4", "cpus: 4, cpus_per_core: 8", "4:1", "must hold"),
    Case(
        "cpus: 4", "cpus: 24, cpus_per_llc: 9", "4:55", "cpus_per_socket 24 is no multiple of cpus_per_llc 9"
    ),
    Case("cpus: 4", "costs: {wakup: 1 us}", "4:39", "did you mean 'wakeup'?"),
    Case("cpus: 4", "costs: {wakeup: 1000}", "4:47", "has no unit"),
    Case("cpus: 4", "costs: {wakeup: -1 us}", "4:47", "at least 0"),
    Case("cpus: 4", "costs: {line_overlap: 4 us}", "4:53", "valid number"),
    Case("cpus: 4", "costs: [1 us]", "4:38", "expected a mapping"),
    Case("cpus: 4", "speed: 0", "4:38", "greater than 0"),
    Case("{profile: server-24, cpus: 4}", "[server-24]", "4:10", "expected a mapping"),
    Case("{profile: server-24, cpus: 4}", "24", "4:10", "valid string"),
    Case("{profile: server-24, cpus: 4}", "", "4:", "expected a mapping (key: value), got nothing"),
    Case("{profile: server-24, cpus: 4}", "./no/such.yaml", "4:10", "unknown machine"),
    Case("machine:", "machin:", "4:1", "did you mean 'machine'?"),
    Case("kernel: linux-6.11", "kernel: 6.11", "5:9", "named with its prefix, for example linux-6.12"),
    Case("kernel: linux-6.11", "kernel: v6.11", "5:9", "did you mean 'linux-6.11'?"),
    Case("kernel: linux-6.11", "kernel: linux-6.11x", "5:9", "did you mean 'linux-6.11'?"),
    Case("kernel: linux-6.11", "kernel: {profile: linux-6.11, tick: 0 ms}", "5:37", "at least 1 us"),
    Case(
        "kernel: linux-6.11", "kernel: {profile: linux-6.11, preemption: ful}", "5:43", "did you mean 'full'?"
    ),
    Case("kernel: linux-6.11", "kernel: linux-5.25", "5:9", "did you mean 'linux-5.19'?"),
    Case("kernel: linux-6.11", "kernel: linux-7.0", "5:9", "did you mean 'linux-6.18'?"),
    Case("kernel: linux-6.11", "kernel: linux-6.99", "5:9", "there are linux-3.0 to linux-6.18"),
    Case(
        "kernel: linux-6.11",
        "kernel: {profile: linux-6.11, rules: {xfs.inodegc: 7}}",
        "5:52",
        "kernel.rules.xfs.inodegc: should be a word, true or false, got 7",
    ),
    Case(
        "kernel: linux-6.11",
        "kernel: {profile: linux-6.11, rules: {xfs.inodgc: task}}",
        "5:39",
        "unknown rule 'xfs.inodgc' (did you mean 'xfs.inodegc'?)",
    ),
    Case(
        "kernel: linux-6.11",
        "kernel: {profile: linux-6.11, rules: {xfs.inodegc: per-cpux}}",
        "5:52",
        "is not one of task, per-mount, per-group, per-cpu (did you mean 'per-cpu'?)",
    ),
    Case(
        "kernel: linux-6.11",
        "kernel: {profile: linux-6.11, rules: {btrfs.early_unlock: 'true'}}",
        "5:59",
        "is not one of false, true",
    ),
    Case(
        "kernel: linux-6.11",
        "kernel: {profile: linux-6.1, rules: {sched.run_to_parity: true}}",
        "5:59",
        "linux-6.1 has CFS",
    ),
    Case(
        "kernel: linux-6.11",
        "kernel: {profile: linux-4.12, rules: {vfs.apparmor: true}}",
        "5:53",
        "linux-4.12 is before 4.13",
    ),
    Case(
        "kernel: linux-6.11",
        "kernel: {profile: linux-6.11, designs: {xfs.inodegc: task}}",
        "5:31",
        "it is kernel.rules now",
    ),
    Case(
        "kernel: linux-6.11",
        "kernel: {profile: linux-6.11, constants: {rwsem_handof_wait: 4 ms}}",
        "5:43",
        "did you mean 'rwsem_handoff_wait'?",
    ),
    # filesystem and locks
    Case("kind: xfs", "kind: xsf", "6:20", "did you mean 'xfs'?"),
    Case("kind: xfs", "kind: zfs", "6:20", "not one of xfs, btrfs, ext4, tmpfs, none"),
    Case("kind: xfs, ", "", "6:1", "key 'kind' is missing"),
    Case("kind: xfs", "kind: {}", "6:20", "not one of"),
    Case("size: 8 GiB", "size: 8", "6:31", "8 has no unit: write a size as, for example, '8 GiB'"),
    Case("size: 8 GiB", "size: 8 GB iB", "6:31", "is not a size"),
    Case("kernel: linux-6.11", "kernel: {profile: linux-6.11, tick: 1 ns}", "5:37", "kernel.tick"),
    Case("kernel: linux-6.11", "kernel: {profile: linux-6.11, base_slice: 0}", "5:43", "kernel.base_slice"),
    Case("size: 8 GiB", "size: 8 Gib", "6:31", "did you mean 'GiB'?"),
    Case("size: 8 GiB", "size: -8 GiB", "6:31", "at least 1"),
    Case("size: 8 GiB", "size: 0", "6:31", "at least 1"),
    Case("agcount: 4", "agcount: 0", "6:47", "greater than or equal to 1"),
    Case("agcount: 4", "agcount: 100000", "6:13", "mkfs.xfs takes 16 MiB to 1 TiB a group"),
    Case("agcount: 4", "agcout: 4", "6:38", "did you mean 'agcount'?"),
    Case(
        "agcount: 4", "costs: {nothing.like_it: 1 us}", "6:46", "unknown cost 'nothing.like_it'; there are "
    ),
    Case("agcount: 4", "costs: {dread.qqqqqqqqqqqq: 1 us}", "6:46", "'; there are dread."),
    Case("filesystem: {kind: xfs, size: 8 GiB, agcount: 4}", "filesystem: xfs", "6:13", "expected a mapping"),
    Case(
        "filesystem: {kind: xfs, size: 8 GiB, agcount: 4}",
        "filesystem: {kind: none}",
        "",
        "needs a filesystem",
    ),
    Case("xfs.buffer: rwsem", "xfs.bufer: rwsem", "7:9", "did you mean 'xfs.buffer'?"),
    Case("xfs.buffer: rwsem", "xfs.buffer: rwsen", "7:21", "did you mean 'rwsem'?"),
    Case("xfs.buffer: rwsem", "xfs.buffer: 3", "7:21", "valid string"),
    # workload
    Case("  kind: compile", "  kind: compil", "9", "did you mean 'compile'?"),
    Case("  kind: compile\n", "", "8:1", "key 'kind' is missing"),
    Case(
        "  kind: compile", "  kind: mix\n  operations: [create, unlink]", "10:16", "a mapping: {op: create}"
    ),
    Case("  tasks: 2", "  profile: compile-emulated\n  task: 2", "11:3", "did you mean 'tasks'?"),
    Case("  tasks: 2", "  profile: compiler\n  tasks: 2", "10:12", "did you mean 'compile'?"),
    Case("  tasks: 2", "  profile: fio\n  tasks: 2", "10:12", "'fio' is no profile of a 'compile' load"),
    Case("  tasks: 2", "  tasks: 0", "10:10", "greater than or equal to 1"),
    Case("  tasks: 2", "  tasks: -1", "10:10", "greater than or equal to 1"),
    Case("  tasks: 2", "  tasks: 1000000000", "10:10", "less than or equal to"),
    Case("  tasks: 2", "  tasks: [1, 2]", "10:10", "valid integer"),
    Case("  tasks: 2", "  task: 2", "10:3", "did you mean 'tasks'?"),
    Case("  tasks: 2", "  think: 2 us", "10:3", "unknown key 'think'"),
    Case("  tasks: 2", "  pin_to_cpu: 4", "10:15", "there is no CPU 4: the machine has CPUs 0 to 3"),
    Case("  tasks: 2", "  pin_to_cpu: -1", "10:15", "greater than or equal to 0"),
    Case("  tasks: 2", "  params: {asm_byte: 3}", "10:12", "did you mean 'asm_bytes'?"),
    Case("directories: shared", "directories: share", "11:16", "did you mean 'shared'?"),
    Case("directories: shared", "directories: per_task", "11:16", "did you mean 'per-task'?"),
    Case("user_cpu: 15 ms", "user_cpu: 15", "12:13", "15 has no unit"),
    Case("user_cpu: 15 ms", "user_cpu: '15'", "12:13", "has no unit"),
    Case("user_cpu: 15 ms", "user_cpu: 15 mss", "12:13", "did you mean 'ms'?"),
    Case("user_cpu: 15 ms", "user_cpu: -15 ms", "12:13", "at least 0"),
    Case("user_cpu: 15 ms", "user_cpu: 0 ms", "12:13", "above 0"),
    Case("user_cpu: 15 ms", "user_cpu: 15 days", "12:13", "unknown unit 'days'"),
    Case("user_cpu: 15 ms", "user_cpu: 1e300 h", "12:13", "too large"),
    Case("user_cpu: 15 ms", "user_cpu: fast", "12:13", "is not a duration"),
    Case("user_cpu: 15 ms", "user_cpu: true", "12:13", "expected a duration"),
    Case("user_cpu: 15 ms", "user_cpu: {ms: 15}", "12:13", "expected a duration"),
    Case("user_cpu: 15 ms", "user_cpu: nan ms", "12:13", "is not a duration"),
    # variants
    Case("{name: a, title: A}", "{name: b, title: A}", "15:12", "already a variant 'b'"),
    Case("{name: a, title: A}", "{title: A}", "14:5", "key 'name' is missing"),
    Case("{name: a, title: A}", "a", "14:5", "expected a mapping"),
    Case("{name: a, title: A}", "{name: a, titel: A}", "14:15", "did you mean 'title'?"),
    Case("{name: a, title: A}", "{name: a, measure: {seed: 2}}", "14:15", "unknown key 'measure'"),
    Case("{name: a, title: A}", "{name: a, workload: {tsks: 2}}", "14:26", "did you mean 'tasks'?"),
    Case("{name: a, title: A}", "{name: a, locks: {xfs.buffer: mutexx}}", "14:35", "did you mean 'mutex'?"),
    Case("locks: {xfs.buffer: rwsem}", "locks: {xfs.AGI: rwsem}", "7:9", "a class of locks"),
    Case("locks: {xfs.buffer: rwsem}", "locks: {vfs.i_rwsem (file): mutex}", "7:9", "mean 'vfs.i_rwsem'?"),
    Case("{name: a, title: A}", "{name: a, machine: sever-24}", "14:24", "did you mean 'server-24'?"),
    Case("{kind: ext4}", "{kind: ext5}", "15:", "did you mean 'ext4'?"),
    Case("{kind: ext4}", "{kind: ext4, agcount: 49}", "15:40", "unknown key 'agcount'"),
    Case("{kind: ext4}", "{size: 1 KiB}", "", "mkfs.xfs takes"),
    Case("{kind: ext4}", "{log_size: 1 KiB}", "15:", "a size of 3420 KiB to 2038 MiB, got 1 KiB"),
    # sweep
    Case(
        "workload.tasks: [1, 2]",
        "workload.tsks: [1, 2]",
        "17:3",
        "unknown key 'tsks' (did you mean 'tasks'?)",
    ),
    Case("workload.tasks: [1, 2]", "workload.tasks: []", "17:19", "needs at least 1 entry"),
    Case("workload.tasks: [1, 2]", "workload.tasks: 2", "17:19", "expected a list ([A, B]), got 2"),
    Case("workload.tasks: [1, 2]", "workload.tasks: [1, 0]", "17:23", "greater than or equal to 1"),
    Case("workload.tasks: [1, 2]", "workload.tasks: [1, '2']", "17:23", "valid integer, got '2'"),
    Case(
        "workload.tasks: [1, 2]", "workload.tasks: [1, 2, 1]", "17:26", "workload.tasks: 1 is there already"
    ),
    Case("workload.tasks: [1, 2]", "workload.tasks: [1, two]", "17:23", "valid integer"),
    Case("workload.tasks: [1, 2]", "worklod.tasks: [1, 2]", "17:3", "did you mean 'workload.tasks'?"),
    Case("workload.tasks: [1, 2]", "tasks: [1, 2]", "17:3", "cannot be swept"),
    Case("workload.tasks: [1, 2]", "measure.seed: [1, 2]", "17:3", "cannot be swept"),
    Case("workload.tasks: [1, 2]", "workload.tasks.x: [1, 2]", "17:3", "single value"),
    Case("workload.tasks: [1, 2]", "workload: [1, 2]", "17:3", "cannot be swept"),
    Case("workload.tasks: [1, 2]", "kernel: [linux-6.1]", "17:3", "did you mean 'kernel.profile'?"),
    Case("  workload.tasks: [1, 2]", "  - 3", "17:3", "expected a mapping"),
    Case(
        "workload.tasks: [1, 2]",
        f"workload.tasks: {list(range(1, 81))}\n  machine.cpus: {list(range(1, 81))}",
        "16:1",
        "12800 points; at most",
    ),
    # measure
    Case("duration: 1 s", "duration: 0 s", "18:35", "above 0"),
    Case("duration: 1 s", "duration: 1", "18:35", "has no unit"),
    Case("duration: 1 s", "duratoin: 1 s", "18:25", "did you mean 'duration'?"),
    Case("warmup: auto", "warmup: atuo", "18:19", "is not a duration"),
    Case("warmup: auto", "warmup: 5", "18:19", "has no unit"),
    Case("replications: 3", "replications: 0", "18:54", "greater than or equal to 1"),
    Case("replications: 3", "replications: 3, max_replications: 2", "18:10", "is below"),
    Case("precision: 5 %", "precision: 5", "18:", "has no unit"),
    Case("precision: 5 %", "precision: 0 %", "18:", "above 0"),
    Case("confidence: 95 %", "confidence: 100 %", "18:", "less than 1"),
    Case("confidence: 95 %", "confidence: 0.95", "18:", "has no unit"),
    Case("confidence: 95 %", "confidence: 950 %", "18:", "at most 1"),
    Case("seed: 1", "seed: -1", "18:", "greater than or equal to 0"),
    Case("seed: 1", "seed: 18446744073709551616", "18:", "less than"),
    Case("seed: 1", "seed: 1e3", "18:", "valid integer"),
    # measured and calibrate
    Case(
        "dataset: seed-xfs-compile-2024", "dataset: seed-xfs-compile-2042", "20:12", "seed-xfs-compile-2024"
    ),
    Case("ext4 one directory: b", "ext4 two directories: b", "21:14", "is not in dataset"),
    Case("ext4 one directory: b", "ext4 one directory: c", "21:34", "there is no variant 'c'"),
    Case("parameter: workload.user_cpu", "parameter: workload.user_cp", "23:16", "did you mean 'user_cpu'?"),
    Case("parameter: workload.user_cpu", "parameter: workload.kind", "24:14", "not one of compile"),
    Case("bounds: [1 ms, 100 ms]", "bounds: [100 ms, 1 ms]", "24:13", "the lower one first"),
    Case("bounds: [1 ms, 100 ms]", "bounds: [1, 100]", "24:14", "has no unit"),
    Case("bounds: [1 ms, 100 ms]", "bounds: [1 ms]", "24:", "a value is missing"),
    Case("[{series: ext4 one directory}]", "[{series: xfs one directory}]", "25:", "role predict"),
    Case(
        "[{series: ext4 one directory}]",
        "[{series: ext4 one dir}]",
        "25:",
        "did you mean 'ext4 one directory'?",
    ),
    Case("[{series: ext4 one directory}]", "[{series: ext4 one directory, x: 3}]", "25:", "no row"),
    Case("[{series: ext4 one directory}]", r'[{series: "a\nb"}]', "25:", r"no series 'a\nb' in dataset"),
    Case("[{series: ext4 one directory}]", "[]", "25:11", "needs at least 1 entry"),
    Case(BASE[BASE.index("measured:") : BASE.index("calibrate:")], "", "22:", "need 'measured:'"),
]
