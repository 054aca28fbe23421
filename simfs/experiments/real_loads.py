"""The commands that do for real what a scenario's tasks do."""

from __future__ import annotations

import shlex

from simfs.scenario.points import Point, group_loads
from simfs.scenario.sections.fio import Fio
from simfs.scenario.sections.workload import Compile, Create, CreateUnlink, Dbench, FsMark, TmpFile, Workload

SECONDS = 10


def real_load(point: Point, at: str) -> str:
    """The command that does what the tasks of a point do, in the folder `at`.

    Raises ValueError for a load that no program of this world does.
    """
    use = point.scenario
    if group_loads(use):
        raise ValueError("groups of tasks have no command of their own; give one with --load")
    load, tasks, where = use.workload, use.tasks, shlex.quote(at)
    match load:
        case CreateUnlink():
            return _own("create_unlink", load.directories, tasks, where)
        case TmpFile() if not load.fsync and load.write == 4096:
            return _own("tmpfile", load.directories, tasks, where)
        case Create():
            return _fs_mark(tasks, where, load.directories, "-s 0 -S 0 -k -n 20000")
        case FsMark():
            size = 0 if load.size is None else load.size
            keep = " -k" if load.keep else ""
            below = load.subdirectories
            turns = "" if load.files_per_directory is None else f" -N {load.files_per_directory}"
            spread = "" if below is None else f" -D {below}{turns}"
            options = f"-s {size} -w {load.write} -S {load.sync} -n {load.files}{spread}{keep} -L 5"
            return _fs_mark(tasks, where, load.directories, options)
        case Dbench():
            return f"dbench -D {where} -t {SECONDS} {tasks}"
        case Fio():
            return _fio(load, tasks, where)
        case Compile():
            return _compile(tasks, where)
        case _:
            raise ValueError(f"--load: no program does for real what {_named(load)} does; give its command")


def readable(load: str) -> bool:
    """Whether `simfs compare` reads what the command prints."""
    return load.startswith(("python ", "fs_mark ", "fio ", "dbench "))


def _own(kind: str, directories: str, tasks: int, where: str) -> str:
    options = f"--tasks {tasks} --directories {directories} --seconds {SECONDS} --at {where}"
    return f"python -m simfs.measuring.load {kind} {options}"


def _compile(tasks: int, where: str) -> str:
    """Prints how many compiles ended."""
    loop = "while gcc -O0 -o $0 main.c; do echo; done"
    each = f"xargs -P {tasks} -I{{}} timeout {SECONDS} sh -c {shlex.quote(loop)} {where}/out{{}}"
    return f"echo 'int main(void) {{ return 0; }}' > main.c; seq {tasks} | TMPDIR={where} {each} | wc -l"


def _fs_mark(tasks: int, where: str, directories: str, options: str) -> str:
    folders = [f"{where}/{n}" for n in range(tasks)] if directories == "per-task" else [where]
    threads = "" if directories == "per-task" else f" -t {tasks}"  # else a thread for each folder
    return f"fs_mark {' '.join(f'-d {folder}' for folder in folders)}{threads} {options}"


def _fio(load: Fio, tasks: int, where: str) -> str:
    mixed = f" --rwmixread={100 * load.rwmixread:.0f}" if load.rw == "randrw" else ""
    engine = "libaio" if load.iodepth > 1 else "psync"
    file = f" --filename={where}/file" if load.files == "shared" else f" --directory={where}"
    options = [
        f"--name=load --rw={load.rw}{mixed} --bs={load.block_size} --size={load.size} --numjobs={tasks}",
        f"--ioengine={engine} --iodepth={load.iodepth} --direct={int(load.direct)} --fsync={load.fsync}",
        f"--time_based --runtime={SECONDS} --group_reporting --output-format=json{file}",
    ]
    return f"fio {' '.join(options)}"


def _named(load: Workload) -> str:
    if isinstance(load, TmpFile):
        return "tmpfile with fsync or other writes than 4 KiB"
    return f"the workload {load.kind}"
