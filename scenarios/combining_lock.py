"""A combining lock, written with shared words. `combining-lock.yaml` runs it beside a queue lock.

It is CC-Synch of P. Fatourou and N. Kallimanis, Revisiting the Combining Synchronization Technique (PPoPP 2012),
algorithm 1. A task that arrives exchanges the tail of a queue for a node of its own and waits at the node that it got.
A task that is told to go runs the requests behind it, one after the other, and then tells the next task to go.
"""

from collections.abc import Generator
from typing import NamedTuple

from simfs._engine import Line, Machine, Step, Task, Word

GO, WAIT, DONE = 0, 1, 2
NOBODY = 0
MOST_TASKS = 64


class Node(NamedTuple):
    """A place in the queue; both words are on one line."""

    state: Word
    behind: Word
    """The number of the next node, from 1."""


class Shared(NamedTuple):
    """What all tasks share; they find it as `task.shared`."""

    tail: Word
    nodes: list[Node]
    own: Word
    """How many nodes have been given to tasks."""
    data: list[Line]
    inside: Word
    """How many are inside: never two."""


def setup(machine: Machine) -> Shared:
    """Make the lock: a node for each task and the first, at which nobody waits."""
    nodes = [_node(machine) for _ in range(MOST_TASKS + 1)]
    data = [machine.new_line() for _ in range(int(machine.params["lines"]))]
    return Shared(machine.new_word(1), nodes, machine.new_word(1), data, machine.new_word())


def _node(machine: Machine) -> Node:
    state = machine.new_word(GO)
    return Node(state, machine.new_word(NOBODY, beside=state))


def work(task: Task, shared: Shared, hold: Step) -> Generator[Step, int, None]:
    """The critical section: it writes all lines of the data."""
    if (yield task.fetch_add(shared.inside, 1)):
        yield task.give_up("two are inside")
    for line in shared.data:
        yield task.touch(line, "write")
    yield hold
    yield task.fetch_add(shared.inside, -1)


def combine(task: Task, shared: Shared, first: int, hold: Step) -> Generator[Step, int, None]:
    """Do the requests from node `first` on, up to `most` of them, and tell the next to go."""
    number = first
    for _ in range(int(task.params["most"])):
        behind = yield task.load(shared.nodes[number - 1].behind)
        if behind == NOBODY:
            break
        yield from work(task, shared, hold)
        yield task.store(shared.nodes[number - 1].state, DONE)
        number = behind
    yield task.store(shared.nodes[number - 1].state, GO)


def worker(task: Task) -> Generator[Step, int, None]:
    """Think, ask for the critical section, and wait until it is done or do it, and that of others."""
    shared, params = task.shared, task.params
    think, hold = task.run(task.exponential(params["think"])), task.run(params["hold"])
    poll = task.run(params["poll"])
    mine = 1 + (yield task.fetch_add(shared.own, 1))
    while True:
        yield think
        yield task.begin()
        yield task.store(shared.nodes[mine - 1].state, WAIT)
        yield task.store(shared.nodes[mine - 1].behind, NOBODY)
        got = yield task.exchange(shared.tail, mine)
        yield task.store(shared.nodes[got - 1].behind, mine)
        mine = got
        while (found := (yield task.load(shared.nodes[mine - 1].state))) == WAIT:
            yield poll
        if found == GO:
            yield from combine(task, shared, mine, hold)
        yield task.end("section")
