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
# # 10. One directory against 49 allocation groups
#
# XFS divides a disk into allocation groups, each with locks of its own. When does it help to have more of them?

# %%
from simfs.lessons import lesson

asked = lesson("groups", seed=2)
asked

# %% [markdown]
# ## Predict
#
# A guess: twice the groups, twice the rate, until there are as many as tasks; and even two groups do what two tasks could, 90,000.

# %%
guess = {2: 90_000, 4: 180_000, 8: 360_000, 16: 720_000, 32: 720_000, 49: 720_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# The lower line is all in *one* directory: its inodes are all in one group, so groups do not matter.
#
# ## Why it is worse than proportional
#
# Two tasks in a group do not share it in turns: they make a convoy (lesson 4). Below, all locks with 4 groups. `grant_to_run` is the time in which the AGI was given to a task that did not run yet.

# %%
four = asked.changed("filesystem.agcount=4").run(variants=["own"], progress=False)
agi = four.locks.set_index("lock").loc["xfs.AGI"]
held = agi["hold_total_ns"]
print(
    f"4 groups: the AGIs are held for {held / 1e6:.0f} ms in all, {100 * agi['grant_to_run_ns'] / held:.0f} % of it by tasks that do not run yet."
)
four.locks.set_index("lock")[
    ["type", "contended", "wait_total_ns", "holder_running_ns", "grant_to_run_ns"]
].head(3).round(0)

# %% [markdown]
# ## See it
#
# The AGI that is waited for longest, 4 groups. Orange: has it and does not run yet.

# %%
asked.changed("filesystem.agcount=4").timeline("own", length="200 us", lock="xfs.AGI")

# %% [markdown]
# ## A measured curve
#
# A real kernel (Linux 6.12) on 24 emulated CPUs creates and unlinks on XFS: in one directory, in a directory each with 4 groups, and with 49. Nothing is fitted.

# %%
import simfs
from simfs.reports.figures.lesson import Line, lines

real = simfs.load("emulated-create-unlink", "sweep.workload.tasks=[1, 4, 24]")
measured = real.run(variants=["xfs-shared", "xfs-per-task", "xfs-49-per-task"], progress=False)
rates = measured.measured
rates = rates[rates.metric == "operations_per_s"]
curves = []
for variant, own in rates.groupby("variant", sort=False):
    title = measured.result.title(variant)
    curves += [
        Line(title, dict(zip(own.tasks, own.simulated, strict=True))),
        Line(title, dict(zip(own.tasks, own.measured, strict=True)), "measured"),
    ]
lines(curves, "tasks", "create-unlinks per second", log_y=True)

# %% [markdown]
# 49 groups with a directory each: 24 times as fast as one task, measured and simulated. 4 groups: 24 tasks are slower than 4. One directory: always one task's rate or less.

# %% [markdown]
# ## Exercises
#
# 1. 32 mail servers write into 32 directories on a disk with 4 groups. What do you advise, and can it be changed on a disk in use?
#
# <details><summary>Answer</summary>
#
# `mkfs.xfs -d agcount=32` or more, so that directories do not share groups. The number of groups is fixed at mkfs; growing the disk adds some.
# </details>
#
# 2. Why is 8 groups for 16 tasks less than half of 16 groups?
#
# <details><summary>Answer</summary>
#
# Each group has two tasks, and two tasks in a convoy get less than one task alone gets on a group of its own.
# </details>
#
# 3. Why not a thousand groups?
#
# <details><summary>Answer</summary>
#
# Each has headers and free space of its own: files get split over groups, allocation looks at more of them, and a disk that seeks has longer ways. And the log is shared by all of them anyway.
# </details>

# %% [markdown]
# ## Sources
#
# * Linux `fs/xfs/xfs_ialloc.c` (`xfs_dialloc`: a new directory goes to another group), `fs/xfs/xfs_buf.c` (`b_sema`).
# * Measured: the simfs project in emulation, 2026; `scenarios/measured/emulated-create-unlink.yaml`. The question that simfs was made for: `simfs run compile-24`.

# %% [markdown]
# ## Result

# %%
own = asked.estimates["own"]
print(
    f"{asked.drawn['tasks']} tasks do {own['49'].mean / own['2'].mean:.0f} times as much with 49 groups as with 2, and nothing more than with 16. "
    f"In one directory they do {100 * asked.estimates['one']['49'].mean / own['49'].mean:.0f} % of that, with any number of groups."
)
