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
# # 11. Little, the USL, and what a what-if says that a profile cannot
#
# A profile says where time goes. Does it say what one gains by making it go away?

# %%
from simfs.lessons import lesson

asked = lesson("whatif", seed=1)
asked

# %% [markdown]
# ## Predict
#
# A guess as one reads it off a profile: the hold is a tenth of a cycle, so the gain is some 7 % everywhere. (Today's rates are about 15, 30, 58, 108, 156 and 159 thousand.)

# %%
guess = {1: 16_400, 2: 32_000, 4: 62_000, 8: 116_000, 16: 167_000, 24: 170_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## Little's law
#
# Tasks in a system = throughput x time in it. Here nothing else is needed to know the wait without measuring it: `n = throughput x (think + wait + hold)`.

# %%
from simfs.scenario.sections.units import duration

think, hold = (duration(asked.drawn[name]) / 1e9 for name in ("think", "hold"))
locks = asked.answer.locks
today = locks[(locks.variant == "today") & (locks.lock == "lock")]
for lock in today.itertuples():
    rate = asked.estimates["today"][str(lock.tasks)].mean
    by_little = lock.tasks / rate - think - hold
    print(
        f"{lock.tasks:2} tasks: waits {1e6 * by_little:5.1f} us by Little's law, {lock.wait_total_ns / lock.acquired / 1e3:5.1f} us recorded"
    )

# %% [markdown]
# (With few tasks the first column is a small difference of large numbers: random times make it uncertain.)
#
# ## The Universal Scalability Law
#
# Gunther's law fits two numbers to a curve: contention (what is in turns) and coherency (what grows with each pair). simfs fits it to each curve.

# %%
usl = asked.answer.table("scaling").set_index("variant")
usl[["rate_per_s", "contention", "coherency", "peak_tasks", "knee_tasks"]].round(4)

# %% [markdown]
# The fit follows the curve, and says that today's lock would *fall* beyond its peak. It will not: a mutex whose spinners queue stays at its ceiling. The law's form cannot bend sharply, so it takes the knee for the beginning of a fall. And it says
# nothing about another hold: two numbers describe a curve, not a machine.
#
# ## Profile beside what-if
#
# The profile: which part of a task's time goes to holding and waiting for the lock. The what-if: the run again with half of the hold, the same random numbers.

# %%
profile, gain = {}, {}
for lock in today.itertuples():
    rate = asked.estimates["today"][str(lock.tasks)].mean
    profile[lock.tasks] = 100 * (1 - rate * think / lock.tasks)
    if lock.tasks > 1:
        half = asked.changed(f"workload.tasks={lock.tasks}").whatif(
            "today", changes=[("lock", {"hold_scale": 0.5})], quick=True, progress=False
        )
        gain[lock.tasks] = half.effects[0].gain_percent.mean

# %%
from simfs.reports.figures.lesson import Line, lines

lines(
    [
        Line("profile: in or before the lock", profile),
        Line("what-if: gain by half the hold", gain),
    ],
    "tasks",
    "per cent",
)

# %% [markdown]
# With few tasks the profile promises more than there is; with many the gain is larger than anything a profile can say: it cannot be more than 100 %, and a gain can.

# %% [markdown]
# ## A measured what-if
#
# In 2020 Dave Chinner took a spinlock (`xc_cil_lock`) out of XFS's commits and measured 32 processes that create and unlink. A profile had shown it hot. Two numbers are fitted to the rows before the change (`fitted` gives what `simfs validate` found), those after it are predicted.

# %%
import simfs
from simfs.lessons import fitted

real = simfs.load("xfs-cil", *fitted("xfs-cil"))
names = ["create-global", "create-gone", "unlink-global", "unlink-gone"]
rows = real.run(variants=names, progress=False).measured.set_index("variant")
rows[["role", "measured", "simulated", "error_percent"]].round(1)

# %%
effect = {
    f"{what}, {column}": 100 * (rows.loc[f"{what}-gone", column] / rows.loc[f"{what}-global", column] - 1)
    for what in ("create", "unlink")
    for column in ("measured", "simulated")
}
for name, percent in effect.items():
    print(f"{name:18} {percent:+5.1f} %")

# %% [markdown]
# For creating the what-if says half of what was measured, for unlinking a third: in the simulated machine something else is then in the way of unlinking, which the real one did not have. A what-if is as good as the model of what comes next.

# %% [markdown]
# ## Exercises
#
# 1. 24 tasks, 160,000 cycles a second, think 60 us, hold 6 us. How long does a task wait?
#
# <details><summary>Answer</summary>
#
# 24 / 160,000 s = 150 us a cycle; less think and hold: 84 us.
# </details>
#
# 2. A lock is held for 30 % of the time. Can its removal double the throughput?
#
# <details><summary>Answer</summary>
#
# Not by the time of its holds alone. But a lock that is granted to sleepers is idle while they wake up, and that time is in no hold.
# </details>
#
# 3. Why must a what-if use the same random numbers?
#
# <details><summary>Answer</summary>
#
# So that both runs differ by the change only. The difference then has a far smaller interval than each of the two rates.
# </details>

# %% [markdown]
# ## Sources
#
# * Little, *A Proof for the Queuing Formula L = lambda W*, Operations Research 9 (1961). Gunther, *Guerrilla Capacity Planning* (2007).
# * Curtsinger and Berger, *Coz: Finding Code that Counts with Causal Profiling*, SOSP 2015.
# * Measured: Dave Chinner, linux-xfs, 2020-05-12; `scenarios/measured/xfs-cil-percpu-chain-2020.yaml`.

# %% [markdown]
# ## Result

# %%
print(
    f"Half of the hold brings {gain[2]:.0f} % with 2 tasks and {gain[24]:.0f} % with 24, where the profile says {profile[2]:.0f} and {profile[24]:.0f} %. "
    f"Taking a lock out of XFS brought {effect['unlink, measured']:.0f} % to unlinking and {effect['create, measured']:.0f} % to creating; predicted were {effect['unlink, simulated']:.0f} and {effect['create, simulated']:.0f} %."
)
