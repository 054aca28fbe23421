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
# # 8. NUMA and CNA
#
# A line of memory comes faster from a CPU of one's own socket than from the other one. Should a lock know?

# %%
from simfs.lessons import lesson

asked = lesson("numa", seed=1)
asked

# %% [markdown]
# ## Predict
#
# A guess after lesson 2: a queued lock is flat beyond the knee.

# %%
guess = {1: 480_000, 2: 900_000, 4: 1_700_000, 8: 2_500_000, 16: 2_500_000, 32: 2_500_000, 48: 2_500_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## How far is a line?

# %%
from simfs.scenario.models import load_machine

costs = load_machine("dual-socket-48").costs
for name, where in (("line_hit", "own cache"), ("line_llc", "own socket"), ("line_remote", "other socket")):
    cost = getattr(costs, name)
    print(f"{where:13} {cost.value:4g} {cost.unit}")

# %% [markdown]
# The queued spinlock serves in the order of arrival, and arrivals are mixed: every second hand-over crosses over, and the lock's line, the node of the next and the two lines of data with it. CNA looks into the queue
# for a waiter of its own socket and puts the others aside, for a millisecond. That needs a queue with somebody of the own socket in it: with 16 tasks there rarely is one, with 48 always.
#
# ## The price

# %%
points = asked.answer.points
points[points.tasks == 48].set_index("variant")[["throughput_per_s", "fairness", "max_min"]].round(2)

# %%
locks = asked.answer.locks
waits = locks[locks.tasks == 48].set_index("variant")[["wait_p50_ns", "wait_p99_ns", "wait_max_ns"]] / 1e3
waits.columns = [name.replace("_ns", "_us") for name in waits.columns]
waits.round(1)

# %% [markdown]
# Half of the tasks wait for a millisecond while the other socket has its turn. Most waits are shorter than with the fair lock, the longest are some fifty times as long.
#
# ## A measured curve
#
# Alex Kogan measured his patches on four sockets: threads that take a lock and write two lines (`lock2` of will-it-scale is the load here). Three numbers are fitted to the stock lock's rows with 1, 16 and 32 threads (`fitted`
# gives what `simfs validate` found). All else is predicted.

# %%
import simfs
from simfs.lessons import fitted

settings = ("sweep.kernel.constants.numa_spinlock_threshold=[1 ms]", *fitted("cna-lock2"))
measured = simfs.load("cna-lock2", *settings).run(quick=True, progress=False)
measured.figure("throughput")

# %% [markdown]
# The stock lock loses two fifths of its rate when the second socket joins (more than 18 threads), and CNA keeps most of it: from the costs of cache lines alone.

# %% [markdown]
# ## Exercises
#
# 1. Why has Linux not taken CNA, when it is so much faster?
#
# <details><summary>Answer</summary>
#
# It helps where a spinlock is contended by a whole socket, and then the lock should be split. It makes the slow path longer for all, and it is unfair for a millisecond. The series reached version 15 and was not merged.
# </details>
#
# 2. With tasks bound to one socket first (`asked.changed("workload.binding=compact")`), where is the step?
#
# <details><summary>Answer</summary>
#
# Between 24 and 32 tasks, where the second socket joins. Up to there both locks are one.
# </details>
#
# 3. What is a millisecond in hand-overs?
#
# <details><summary>Answer</summary>
#
# At three million a second, three thousand: one crossing in three thousand hand-overs is nothing, so a shorter time would do. Fairness would be better for it: the constant is a choice.
# </details>

# %% [markdown]
# ## Sources
#
# * Dice and Kogan, *Compact NUMA-Aware Locks*, EuroSys 2019.
# * Measured: Alex Kogan, linux-arch, "[PATCH v15 0/6] Add NUMA-awareness to qspinlock" (2021); `scenarios/measured/cna-lock2-2021.yaml`.

# %% [markdown]
# ## Result

# %%
cna, stock = (asked.estimates[name]["48"].mean for name in ("cna", "qspinlock"))
longest = waits["wait_max_us"]
print(
    f"With 48 tasks on two sockets CNA gives {100 * (cna / stock - 1):.0f} % more than the queued spinlock, "
    f"and its longest wait is {longest['cna']:,.0f} us instead of {longest['qspinlock']:,.0f} us."
)
