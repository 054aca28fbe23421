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
# # 5. Stealing, starvation, hand-off
#
# A lock that anybody may take who comes by is fast. It may also forget who waits. How is that mended, and what does it cost?

# %%
from simfs.lessons import lesson

asked = lesson("stealing", seed=1)
asked

# %% [markdown]
# ## Predict
#
# After lesson 4 one might fear that a queue of sleepers makes a convoy here too.

# %%
guess = {2: 150_000, 4: 180_000, 8: 180_000, 16: 90_000, 32: 90_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## Who pays
#
# The figure says nothing about single tasks. The longest wait does, and so does the evenness of turns: Jain's index is 1 when all tasks had as many, and 1/n when one had all.

# %%
from simfs.reports.figures.lesson import Line, lines

titles = {name: asked.result.title(name) for name in asked.estimates}
locks = asked.answer.locks
locks = locks[locks.lock == "lock"]  # not the spinlock around its queue
worst = (
    locks[["wait_max_ns", "still_waiting_max_ns"]].max(axis=1) / 1e6
)  # a wait may last longer than the run
longest = {
    titles[name]: dict(zip(asked.places, worst[locks.variant == name], strict=True)) for name in titles
}
lines(
    [Line(name, curve) for name, curve in longest.items()],
    "tasks",
    "longest wait (ms)",
    log_y=True,
)

# %%
points = asked.answer.points
most = points[points.tasks == 32].set_index("variant")[
    ["throughput_per_s", "fairness", "context_switches_per_operation"]
]
most.join(locks[locks.tasks == 32].set_index("variant")[["wait_p50_ns", "steals", "slept"]]).round(2)

# %% [markdown]
# * **Steals** (4.8): a task that runs takes the lock although others sleep for it. Some sleep through the whole run: they starve.
# * **Hand-off** (5.3 and later): who has waited at the head of the queue for 4 ms sets a bit, and the next release leaves the lock to it. Nobody starves, and the rate stays. But it is no promise of 4 ms: 24 tasks
#   sleep here, and each has to wait until it is the first.
# * **Grants** (2.6): first come, first served. All waits are alike, and all are in a convoy.

# %% [markdown]
# ## A measurement
#
# In 2022 somebody measured eight processes that read at random and eight that write to the same file on XFS, where a read shares the inode's lock and a write has it alone. Readers got next to nothing. ext4 takes no lock for
# buffered reads. One factor (`machine.speed`) is fitted to ext4; `fitted` gives what `simfs validate` found.

# %%
import simfs
from simfs.lessons import fitted

real = simfs.load(
    "xfs-iolock-starvation",
    *fitted("xfs-iolock-starvation"),
    "measure.duration=400 ms",
    "measure.replications=1",
)
rows = real.run(variants=["xfs-5.10", "ext4"], progress=False).measured
rows[["variant", "metric", "role", "measured", "simulated"]].round(3)

# %% [markdown]
# Readers that share the lock wait a thousand times as long as those that take none: measured 14 ms and 8.5 us. Simulated it is the same order. It is no exact prediction: drive and machine are not told.

# %% [markdown]
# ## Exercises
#
# 1. Why not hand the lock over each time?
#
# <details><summary>Answer</summary>
#
# Each hand-over to a sleeper costs a wake-up during which the lock is idle: the convoy of lesson 4. A hand-off after 4 ms costs that once in 4 ms.
# </details>
#
# 2. The mutex of 4.10 hands over after *one* wake-up in vain. Compare: `asked.changed("workload.lock=mutex", "workload.tasks=32").run()`.
#
# <details><summary>Answer</summary>
#
# (`mutex` is that of 4.10 and later.) Nearly the same. A sleeper that is woken has to get a CPU before it can wait in vain, and spinners have all of them: here that takes milliseconds, too. Look at `handoffs`, `steals` and the longest wait.
# </details>
#
# 3. A monitor shows the mean wait of a lock. What does it hide?
#
# <details><summary>Answer</summary>
#
# Most waits are short because those who run steal; a few are very long. The mean is between them and is nobody's wait. Ask for the 99th percentile, the longest, and those that still wait.
# </details>

# %% [markdown]
# ## Sources
#
# * Linux `kernel/locking/rwsem.c`: `RWSEM_WAIT_TIMEOUT` and `RWSEM_FLAG_HANDOFF` (5.3), `rwsem_optimistic_spin`.
# * Jain, Chiu, Hawe, *A Quantitative Measure of Fairness and Discrimination*, DEC-TR-301 (1984).
# * Measured: `scenarios/measured/xfs-iolock-reader-starvation-2022.yaml`.

# %% [markdown]
# ## Result

# %%
steal, hand_off, grant = (longest[titles[name]]["32"] for name in ("steal", "hand-off", "grant"))
rates = {name: asked.estimates[name]["32"].mean for name in titles}
print(
    f"With 32 tasks on 8 CPUs the longest wait is {steal:.0f} ms, the whole run, where waiters are robbed, {hand_off:.0f} ms with hand-off and {grant:.1f} ms with grants. "
    f"Hand-off has {100 * rates['hand-off'] / rates['steal']:.0f} % of the stealing lock's rate, granting {100 * rates['grant'] / rates['steal']:.0f} %."
)
