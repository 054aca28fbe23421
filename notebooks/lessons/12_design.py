# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 12. Design your own
#
# You know spinning, sleeping, queues, stealing and hand-off. Put them together, have the lock judged, and enter it for a tournament.

# %%
from simfs.lessons import lesson

asked = lesson("design", seed=1)
asked

# %% [markdown]
# ## Predict

# %%
guess = {
    "tas": 400_000,
    "ticket": 450_000,
    "mcs": 500_000,
    "semaphore": 400_000,
    "mutex": 450_000,
    "rwsem": 450_000,
}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## A lock in ten lines
#
# Spin for 5 us, then sleep. `docs/how-to/ten-lines.md` has all that a lock may use.

# %%
from pathlib import Path
from tempfile import mkdtemp

CODE = '''
from simfs.teach import Lock, Word


class Patient(Lock):
    """Spin for 5 us, then sleep. A release wakes the first sleeper, who has to try again."""

    def __init__(self):
        self.taken = Word(0)
        self.sleepers = []

    def acquire(self, task):
        if not self.taken.exchange(1):
            return
        if task.spin_until(lambda: self.taken.load() == 0, at_most=5000) and not self.taken.exchange(1):
            return
        self.sleepers.append(task)
        while self.taken.exchange(1):
            task.sleep()
        self.sleepers.remove(task)

    def release(self, task):
        self.taken.store(0)
        for first in self.sleepers[:1]:
            self.wake(first)
'''
folder = Path(mkdtemp())
_ = (folder / "mine.py").write_text(CODE)

# %% [markdown]
# ## The judge
#
# In a terminal: `simfs check mine.py:Patient`. Here with fewer schedules, and without the simulated machine.

# %%
from simfs.reports.check import text
from simfs.teach.verdicts import judge

print(text(judge(f"{folder}/mine.py:Patient", 2_000, simulate=False)).partition("\n")[2])

# %% [markdown]
# And a fault: who forgets to try again after it was woken.

# %%
(folder / "wrong.py").write_text(CODE.replace("while self.taken.exchange(1):", "if self.taken.exchange(1):"))
judgement = judge(f"{folder}/wrong.py:Patient", 2_000, simulate=False)
print(text(judgement).partition("\n")[2].partition("Tried:")[0])

# %% [markdown]
# ## The tournament
#
# 8 tasks on 8 CPUs. No lock is best at everything: what it gives, and what it leaves of the CPUs for others. A lock is on the **Pareto front** if no other is at least as good in both and better in one.

# %%
import simfs
from simfs.scenario.paths import SCENARIOS

BUILT_IN = ["tas", "ticket", "mcs", "qspinlock", "semaphore", "mutex", "rwsem"]
SCENARIO = f"""
simfs: 1
name: tournament
title: Built-in locks and my own
machine: {{profile: server-24, cpus: 8}}
kernel: linux-6.12
locks: {{patient: mine.py:Patient, sleeping: "{SCENARIOS}/teachlocks.py:Sleeping"}}
workload: {{kind: lock_cycle, tasks: 8, lock: tas, think: {{exponential: 10 us}}, hold: {{exponential: 2 us}}}}
sweep: {{workload.lock: [{", ".join(BUILT_IN)}, patient, sleeping]}}
measure: {{warmup: 1 ms, duration: 6 ms, replications: 2}}
"""
_ = (folder / "tournament.yaml").write_text(SCENARIO)
table = simfs.load(folder / "tournament.yaml").run(progress=False).points
table = table.rename(columns={"workload.lock": "lock"}).set_index("lock")
table[["throughput_per_s", "idle_percent", "spin_percent", "fairness", "joules_per_operation"]].round(
    {"throughput_per_s": 0, "idle_percent": 1, "spin_percent": 1, "fairness": 4, "joules_per_operation": 6}
)

# %%
from simfs.reports.figures.lesson import pareto, scatter

places = {name: (row.throughput_per_s, row.idle_percent) for name, row in table.iterrows()}
front = pareto(places)
scatter(places, front, "lock cycles per second", "CPU time left for others (%)")

# %% [markdown]
# Blue: on the front. Orange: another lock is better. Labels of neighbours stand on top of each other, the slowest highest.
#
# There is no measured curve here: nobody but you has built your lock. The built-in ones stand beside measurements in lessons 2 to 8.

# %% [markdown]
# ## Exercises
#
# 1. Let `Patient` spin for 1 us, or for 50. Where does it go in the picture?
#
# <details><summary>Answer</summary>
#
# With 1 us towards `sleeping`, up and to the left; with 50 us towards the spinlocks. The best time depends on the hold, here 2 us: lesson 3.
# </details>
#
# 2. Make it FIFO: set `fifo = True`, and let the judge say no. Then mend it.
#
# <details><summary>Answer</summary>
#
# The judge finds that a spinner passes sleepers. Either all wait in one queue (and it becomes slower), or the promise goes.
# </details>
#
# 3. Beat the ticket lock at 8 tasks by a lock of your own, and say why yours loses at 64.
#
# <details><summary>Answer</summary>
#
# A queue in which each waiter polls a word of its own (`Clh` in `scenarios/teachlocks.py`) is faster at 8. With 64 tasks on 8 CPUs whoever is next in the queue is mostly off CPU (lesson 6), and all others wait for it; `preemption = False` mends that.
# </details>

# %% [markdown]
# ## Sources
#
# * Guerraoui, Guiroux, Lachaize, Quema, Trigonakis, *Lock-Unlock: Is That All?*, ACM TOCS 36 (2019): 28 locks, and no best one.
# * Musuvathi and Qadeer, *Iterative Context Bounding for Systematic Testing of Multithreaded Programs*, PLDI 2007 (how the judge looks for faults).

# %% [markdown]
# ## Result

# %%
mine, best = places["patient"], max(places, key=lambda name: places[name][0])
where = "on the Pareto front" if "patient" in front else "not on the Pareto front"
print(
    f"The fastest of {len(places)} locks is {best} with {places[best][0]:,.0f} cycles a second; mine has {100 * mine[0] / places[best][0]:.0f} % of that and leaves {mine[1]:.0f} % of the CPUs to others. "
    f"It is {where}, which has: {', '.join(sorted(front))}."
)
