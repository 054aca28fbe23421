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
# # 2. Test-and-set, ticket, MCS, and why polling costs
#
# Three spinlocks do the same: one task in, all others wait on their CPUs. With 48 tasks one of them is six times as fast as another. Why?

# %%
from simfs.lessons import lesson

asked = lesson("polling", seed=5)
asked

# %% [markdown]
# ## Predict
#
# Lesson 1 says: the ceiling is `1 / hold`, and then the curve is flat. Let us guess that.

# %%
guess = {1: 390_000, 2: 780_000, 4: 1_500_000, 8: 2_000_000, 16: 2_000_000, 32: 2_000_000, 48: 2_000_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## What a hand-over costs
#
# Beyond the knee somebody always waits, so a cycle takes a hold and a hand-over: `1 / throughput = hold + hand-over`.

# %%
from simfs.reports.figures.lesson import Line, lines
from simfs.scenario.sections.units import duration

hold = duration(asked.drawn["hold"])
titles = {name: asked.result.title(name) for name in asked.estimates}
hand_over = {
    name: {at: 1e9 / found.mean - hold for at, found in curve.items() if int(at) >= 16}
    for name, curve in asked.estimates.items()
}
lines([Line(titles[name], curve) for name, curve in hand_over.items()], "tasks", "time of a hand-over (ns)")

# %% [markdown]
# * **MCS**: each waiter polls a word of its own. A release writes one word, and one CPU fetches one line. However many wait, that is all.
# * **Ticket**: all waiters poll `serving`. A release takes the line away from all of them, and they fetch it again, one after the other. The next owner is somewhere
#   among them. Each further waiter makes every hand-over longer.
# * **Test-and-set**: waiters see it free and all try at once. Each try takes the line for writing, and all but one are in vain.
#
# ## Who is served?

# %%
points = asked.answer.points
points[points.tasks == 48].set_index("variant")[["throughput_per_s", "fairness", "max_min"]].round(2)

# %% [markdown]
# `fairness` is Jain's index of turns of the tasks (1: all had the same number), `max_min` most turns over fewest. Ticket and MCS are first come, first served. Test-and-set is not.

# %% [markdown]
# ## A measured curve
#
# Linux replaced the ticket lock by a queued spinlock, a kind of MCS lock in 4 bytes, in 2015. Waiman Long measured how long a loop of five million cycles takes with 3 to 8 tasks on
# one socket, and with 3 and 4 tasks that are all on different sockets. One row is fitted (filled), the rest is predicted.

# %%
import simfs

measured = simfs.load("qspinlock-loop").run(progress=False)
measured.figure("throughput")

# %% [markdown]
# On one socket the queued spinlock is flat, measured and simulated, as MCS is above. Between sockets simfs is up to twice too fast: nobody has published the time of a transfer
# between sockets of that machine, so it is that of a younger one.

# %% [markdown]
# ## Exercises
#
# 1. A ticket lock could poll less often the further away its turn is (*proportional back-off*). Which of its costs would that save?
#
# <details><summary>Answer</summary>
#
# The fetches of those who are far from their turn. The next in line polls often, and no longer stands behind all others. Linux tried it in 2013 and dropped it:
# the right pause depends on the length of a hold, which the lock does not know.
# </details>
#
# 2. Why does an MCS lock need a word for each waiter, and where does Linux put it?
#
# <details><summary>Answer</summary>
#
# So that nobody polls a line that others poll. In `qspinlock` each CPU has four of them (task, softirq, hardirq, NMI), for a CPU waits for one spinlock at a time in each context.
# </details>
#
# 3. With 2 tasks all three locks give nearly the same. Why?
#
# <details><summary>Answer</summary>
#
# There is one waiter at most: the only poller is the next owner.
# </details>

# %% [markdown]
# ## Sources
#
# * Mellor-Crummey and Scott, *Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors*, ACM TOCS 9 (1991).
# * Boyd-Wickizer, Kaashoek, Morris, Zeldovich, *Non-scalable locks are dangerous*, Linux Symposium 2012.
# * Linux `kernel/locking/qspinlock.c`. Measured: Waiman Long, commit 2c83e8e9492d (2015); `scenarios/measured/qspinlock-loop-2014.yaml`.

# %% [markdown]
# ## Result

# %%
fell = 1 - asked.curve["48"] / max(asked.curve.values())
ticket, mcs = hand_over["ticket"], hand_over["mcs"]
print(
    f"From its best to 48 tasks the ticket lock loses {100 * fell:.0f} %. "
    f"A hand-over takes {ticket['16']:,.0f} ns with 16 tasks and {ticket['48']:,.0f} ns with 48; with MCS {mcs['16']:,.0f} and {mcs['48']:,.0f} ns."
)
