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
# # 4. Grant against hint: the convoy
#
# Two locks whose waiters sleep. One gives the lock to the sleeper that it wakes. The other only says: look again. One of them makes a *convoy*.

# %%
from simfs.lessons import lesson

asked = lesson("convoy", seed=1)
asked

# %% [markdown]
# ## Predict
#
# After lesson 3 we know that a contended hand-over contains a wake-up. A guess: the ceiling is 1 / (2 us + 2 us).

# %%
guess = {1: 24_000, 2: 48_000, 4: 95_000, 8: 180_000, 16: 250_000, 24: 250_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## See it
#
# The same load with both locks, 24 tasks, around the worst wait. Blue: has the lock and runs. Orange: was given the lock and does not run yet. Yellow: waits. Arrows: hand-overs.

# %%
asked.changed("workload.tasks=24").timeline("grant", "hint", length="150 us")

# %% [markdown]
# In the upper picture each hold has an orange head that is longer than itself. Meanwhile all wait in the queue, and it does not get shorter: that is the convoy. Below, whoever comes by while the woken task is
# on its way takes the lock.
#
# ## Once formed, it stays
#
# A convoy needs no overload. How often must tasks come so that the queue never empties? The ceiling is `1 / (hold + hand-over)`, not `1 / hold`, so the knee comes earlier.

# %%
from simfs.scenario.sections.units import duration

think, hold = (duration(asked.drawn[name]) for name in ("think", "hold"))
cycle = 1e9 / asked.curve["24"]
print(f"Hold {hold / 1e3:.0f} us, hand-over {(cycle - hold) / 1e3:.1f} us.")
print(f"The knee would be at {(think + hold) / hold:.0f} tasks, and is at {(think + cycle) / cycle:.1f}.")

# %% [markdown]
# ## A measured curve
#
# XFS locks the header of an allocation group (AGI) by a semaphore that grants. simfs has a laboratory: a real kernel (Linux 6.12) on 24 *emulated* CPUs. There 1 to 24 processes create and unlink
# in one directory, which is in one group. Nothing is fitted here: filled is a row to which one may fit.

# %%
import simfs

real = simfs.load("emulated-create-unlink", "sweep.workload.tasks=[1, 4, 24]")
measured = real.run(variants=["xfs-shared"], progress=False)
measured.figure("throughput")

# %%
rows = measured.measured
rows[rows["metric"].isin(["idle_percent", "context_switches_per_operation"])][
    ["tasks", "metric", "measured", "simulated"]
].round(1)

# %% [markdown]
# More processes do not help: 24 do less than one. 9 of 10 CPUs idle, and each operation switches six to seven times, in the real kernel and in the simulated one. The simulated convoy of 24
# is a sixth faster: a hand-over in the real kernel takes a few microseconds longer.

# %% [markdown]
# ## Exercises
#
# 1. A release could wake *all* sleepers, with a hint. What is wrong with that?
#
# <details><summary>Answer</summary>
#
# A thundering herd: all wake up, one gets the lock, all others sleep again. Each hand-over costs as many switches as there are waiters. btrfs had this until 5.10.
# </details>
#
# 2. Who can starve under a hint, and not under a grant?
#
# <details><summary>Answer</summary>
#
# A sleeper: whenever it wakes up, somebody who runs has been faster. See lesson 5.
# </details>
#
# 3. Would it help XFS to spin before it sleeps on the AGI? Run `simfs run compile-24 --quick` and look at the variant `xfs-spinning`.
#
# <details><summary>Answer</summary>
#
# Some. Holders of an AGI sleep themselves at times (for space in the log, for other buffers), and nobody can spin on a holder that sleeps.
# </details>

# %% [markdown]
# ## Sources
#
# * Blasgen, Gray, Mitoma, Price, *The Convoy Phenomenon*, ACM SIGOPS Operating Systems Review 13 (1979).
# * Linux `kernel/locking/semaphore.c` (`__up`), `fs/xfs/xfs_buf.c` (`xfs_buf_lock`).
# * Measured: the simfs project in emulation, 2026; `scenarios/measured/emulated-create-unlink.yaml`.

# %% [markdown]
# ## Result

# %%
grant, hint = (asked.estimates[name]["24"].mean for name in ("grant", "hint"))
print(
    f"With 24 tasks the lock that grants gives {grant:,.0f} cycles a second, {100 * grant * hold / 1e9:.0f} % of what its holds allow; "
    f"the one that hints gives {hint / grant:.1f} times as many, {100 * hint * hold / 1e9:.0f} %."
)
