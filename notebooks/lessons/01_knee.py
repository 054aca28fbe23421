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
# # 1. Utilisation and the knee
#
# One lock, and ever more tasks. Where does it stop to help that there are more of them?
# This is the *machine repairman* of queueing theory: one can compute the answer, and simulate it.

# %%
from simfs.lessons import lesson

asked = lesson("knee", seed=1)
asked

# %% [markdown]
# ## Predict
#
# Write down a guess before you go on. The one here is what many people think first: twice the tasks, twice the rate.

# %%
guess = {1: 20_000, 2: 40_000, 4: 80_000, 8: 160_000, 16: 320_000, 24: 480_000}

# %% [markdown]
# ## Reveal
#
# A guess has 100 points where it is right, 0 where it is off by a factor of two or more.

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## By hand
#
# Two bounds need no simulation. `n` tasks that never meet get `n / (think + hold)`. The lock gives at most `1 / hold`. They cross at
# `(think + hold) / hold` tasks: that is the **knee**.
#
# Between them there is an exact formula if times are exponential: a task that comes finds the queue that `n - 1` tasks would have
# (*mean value analysis*).

# %%
from simfs.scenario.sections.units import duration

think, hold = (duration(asked.drawn[name]) / 1e9 for name in ("think", "hold"))


def rate(tasks: int) -> float:
    """Cycles a second of the machine repairman."""
    queue = throughput = 0.0
    for n in range(1, tasks + 1):
        stay = hold * (1 + queue)  # one's own hold after those of who is there
        throughput = n / (think + stay)
        queue = throughput * stay  # Little's law
    return throughput


tasks = [int(place) for place in asked.places]
by_hand = {n: rate(n) for n in range(1, 25)}
knee = (think + hold) / hold
print(f"The knee is at {knee:.0f} tasks.")

# %%
from simfs.reports.figures.lesson import Line, lines

lines(
    [
        Line("ticket lock", asked.curve),
        Line("mean value analysis", by_hand, "by hand"),
        Line("bound: n / (think + hold)", {n: n / (think + hold) for n in tasks if n <= 2 * knee}, "bound"),
        Line("bound: 1 / hold", {n: 1 / hold for n in tasks}, "bound"),
    ],
    "tasks",
    "lock cycles per second",
)

# %% [markdown]
# The knee is no corner. Well before it tasks wait, because they come at random and sometimes together. *Utilisation* is the part of the time in
# which the lock is held: throughput times hold.

# %%
for n, lock in zip(tasks, asked.answer.locks.itertuples(), strict=True):
    held = 100 * asked.curve[str(n)] * hold
    waits = lock.wait_total_ns / lock.acquired / 1e3
    print(
        f"{n:3} tasks: the lock is held {held:3.0f} % of the time, a task waits {waits:5.1f} us in each cycle"
    )

# %% [markdown]
# ## A measured curve
#
# Until 2021 one spinlock protected the table of all inodes in memory, `inode_hash_lock`. Dave Chinner measured how many files 2 to 32 threads create on
# ext4, with that lock and with a lock for each chain. The machine's speed and the time under the lock are fitted to the rows that are filled (`fitted` gives what `simfs validate` found); all else is predicted.

# %%
import simfs
from simfs.lessons import fitted

measured = simfs.load("inode-hash", *fitted("inode-hash")).run(progress=False)
measured.figure("throughput")

# %% [markdown]
# Up to 8 threads both curves are near the measured ones, and with one lock the knee is there. Beyond it simfs is a fifth too low with 16 threads and a seventh with 32. With a lock for each chain it is within 15 % everywhere; with 32 threads tasks
# then wait for another lock, that of the lists of ext4's journal (`measured.locks` has it). Behind each lock stands the next one, and a model of one lock knows of one lock.

# %% [markdown]
# ## Exercises
#
# 1. Think is 95 us and hold 5 us. How many tasks can the lock serve before it limits them? And if hold is halved?
#
# <details><summary>Answer</summary>
#
# The knee is at (95 + 5) / 5 = 20 tasks; with half of the hold at (95 + 2.5) / 2.5 = 39. The knee moves, and the ceiling doubles.
# </details>
#
# 2. With constant times instead of random ones, is the curve above or below? Try `asked.changed("workload.think=95 us", "workload.hold=5 us")`.
#
# <details><summary>Answer</summary>
#
# Above: tasks fall into step and hardly meet before the knee. The two bounds are then nearly the curve.
# </details>
#
# 3. Your service keeps a lock held for 90 % of the time and wants 20 % more traffic. What do you tell its owners?
#
# <details><summary>Answer</summary>
#
# It would be held for 108 % of the time, which nothing can be. The hold has to become shorter, or the lock has to be split.
# </details>

# %% [markdown]
# ## Sources
#
# * Machine repairman and mean value analysis: Reiser and Lavenberg, *Mean-Value Analysis of Closed Multichain Queuing Networks*, JACM 27 (1980).
# * Bounds: Lazowska, Zahorjan, Graham, Sevcik, *Quantitative System Performance* (1984), chapter 5.
# * Measured: Dave Chinner, linux-fsdevel, 2021-04-06; `scenarios/measured/vfs-inode-hash-bl-create-2021.yaml`.

# %% [markdown]
# ## Result

# %%
worst = max(abs(asked.curve[str(n)] / by_hand[n] - 1) for n in tasks)
at_knee = rate(round(knee)) * hold
print(
    f"The knee is at {knee:.0f} tasks; there the lock is held {100 * at_knee:.0f} % of the time, not 100 %. "
    f"Simulation and formula differ by {100 * worst:.1f} % at most, which is what hand-overs cost."
)
