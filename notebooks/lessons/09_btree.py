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
# # 9. Lock coupling and optimistic B-trees
#
# Each task has a directory of its own. So nothing is shared, is it?

# %%
from simfs.lessons import lesson

asked = lesson("btree", seed=1)
asked

# %% [markdown]
# ## Predict
#
# The guess of who has not read "one B+ tree": it scales, less and less.

# %%
guess = {1: 60_000, 2: 120_000, 4: 230_000, 8: 400_000, 16: 600_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## Which lock
#
# Each tree block has a lock. L0 are leaves, L1 the nodes above them; of a small tree L1 is the root.

# %%
locks = asked.answer.locks
most = locks[(locks.tasks == 16) & (locks.variant == "asked")].head(4).set_index("lock")
most[["type", "acquired", "acquired_shared", "contended", "wait_total_ns", "slept"]].round(0)

# %% [markdown]
# * **Lock coupling** (crabbing): lock the child, then unlock the parent. At each moment one holds two locks at most, and nobody overtakes.
# * **Optimistic**: lock inner nodes for reading only, and the leaf for writing. If the leaf has to be split one starts again, with write locks from higher up. In the table `acquired - acquired_shared` of L1 says how often somebody
#   had the root for itself.
# * One writer at the root keeps all out. That is lesson 7: few writers cost much.
#
# The second variant keeps the parent locked until the leaf has been searched, as Linux did before 5.17.

# %%
early, late = (asked.estimates[name] for name in ("asked", "late"))
for at in asked.places:
    print(f"{at:>2} tasks: unlocking early brings {100 * (early[at].mean / late[at].mean - 1):+5.1f} %")

# %% [markdown]
# ## Measured
#
# The patch's author, Filipe Manana, measured 12 threads on a growing tree (`scenarios/measured/seed-btrfs-unlock-parent-2021.yaml`). His rows, without a simulation: trees of 12 million files take too long for a lesson.

# %%
from simfs.scenario import load_dataset

rows = load_dataset("seed-btrfs-unlock-parent-2021").rows
before, after = ({row.x: row.value for row in rows if row.series == name} for name in ("before", "after"))
for files, rate in before.items():
    print(
        f"{files / 1e6:4.1f} million files: {rate:9,.0f} -> {after[files]:9,.0f} files a second, {100 * (after[files] / rate - 1):+5.1f} %"
    )

# %% [markdown]
# And a curve over tasks, from a real kernel (6.12) on 24 emulated CPUs, creating and unlinking on btrfs in a directory each. Nothing is fitted.

# %%
import simfs

real = simfs.load("emulated-create-unlink", "sweep.workload.tasks=[1, 4, 24]")
measured = real.run(variants=["btrfs-per-task"], progress=False)
measured.figure("throughput")

# %% [markdown]
# Two fifths more with 4 than with one, and with 24 less than with one, in the real kernel and in the simulated one: each operation sleeps several times for a tree block, and each hand-over takes a wake-up.

# %% [markdown]
# ## Exercises
#
# 1. Why does a larger tree scale better? (Try seeds until `files` is 300000.)
#
# <details><summary>Answer</summary>
#
# The tasks' inodes and names lie in more leaves, and those below more nodes. The root is locked for writing only when a node below it is split, which a larger tree has more rarely for each insertion.
# </details>
#
# 2. Could one go down without any locks?
#
# <details><summary>Answer</summary>
#
# Yes: read a version, go down, and look whether the version is the same (optimistic lock coupling; the kernel's maple tree uses RCU). Readers then write no shared line at all.
# </details>
#
# 3. An administrator gives each task a btrfs *subvolume* of its own. What changes?
#
# <details><summary>Answer</summary>
#
# Each subvolume has a tree of its own, so there are as many roots. What is left shared are the trees for extents and space.
# </details>

# %% [markdown]
# ## Sources
#
# * Bayer and Schkolnick, *Concurrency of Operations on B-Trees*, Acta Informatica 9 (1977).
# * Leis, Haubenschild, Neumann, *Optimistic Lock Coupling*, IEEE Data Engineering Bulletin 42 (2019).
# * Linux `fs/btrfs/ctree.c` (`btrfs_search_slot`). Measured: Filipe Manana (2021); the simfs project in emulation (2026).

# %% [markdown]
# ## Result

# %%
best = max(early, key=lambda at: early[at].mean)
root = most.iloc[0]
print(
    f"Creation is fastest with {best} tasks and {early[best].mean / early['1'].mean:.1f} times as fast as with one. With 16 tasks {root['slept']:,.0f} of {root['acquired']:,.0f} holds of {most.index[0]} "
    f"came after a sleep; unlocking the parent early brings {100 * (early['16'].mean / late['16'].mean - 1):.0f} %."
)
