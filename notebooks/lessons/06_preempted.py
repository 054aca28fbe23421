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
# # 6. A holder is preempted
#
# A scheduler takes the CPU from a task in the middle of what it does. What if it holds a lock, or is the next in line?

# %%
from simfs.lessons import lesson

asked = lesson("preempted", seed=1)
asked

# %% [markdown]
# ## Predict
#
# Two CPUs are busy with two tasks. A third and fourth task can add nothing. So the guess is a flat line.

# %%
guess = {1: 71_000, 2: 130_000, 3: 130_000, 4: 130_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## See it
#
# Three tasks on two CPUs, the lock in user space. Pink: spins. Light blue: wants a CPU and has none.

# %%
asked.changed("workload.tasks=3", "measure.duration=12 ms").timeline("user", length="10 ms")

# %% [markdown]
# The number that is up belongs to a task that has no CPU. The other two spin, each for its slice, until the scheduler thinks of it. FIFO order makes it worse: with test-and-set any task that runs may go on.
#
# ## What kernels do
#
# * A **spinlock** switches preemption off. In the figure above that is the second line.
# * A **mutex** or rwsem stops to spin as soon as the owner is off CPU (`owner_on_cpu`), and sleeps.
# * A **guest** of a hypervisor cannot switch preemption off: the host takes the CPU away. Paravirtual spinlocks sleep after a while.
# * In **user space** a futex is the answer: spin a little, then sleep.

# %%
table = asked.answer.points.set_index(["variant", "tasks"])[
    ["throughput_per_s", "spin_percent", "context_switches_per_s"]
]
table.round(0)

# %% [markdown]
# ## A measured curve?
#
# There is none here. The published data that come with simfs are of kernels, whose spinlocks are protected from this. What follows from it has been measured often: Ousterhout's co-scheduling (1982) and the paravirtual spinlocks
# of Xen (Friebel, 2008) were both made because of it. Do measure it yourself: `pthread_spin_lock` with one thread more than CPUs.

# %% [markdown]
# ## Exercises
#
# 1. Which of the two is worse: the *holder* loses its CPU, or the *next in line* of a FIFO lock does?
#
# <details><summary>Answer</summary>
#
# For all others it is the same: nobody gets on until that task runs. But with ever more waiters it is ever more often somebody in line; holders are only one. A lock that can be stolen is immune to the second.
# </details>
#
# 2. Why does a timer tick matter here?
#
# <details><summary>Answer</summary>
#
# Who spins never leaves the CPU by itself. So the scheduler acts when the tick comes: each bad moment costs up to a slice and a tick, milliseconds where a hold takes microseconds.
# </details>
#
# 3. Replace the lock by one that sleeps, `asked.changed("locks.user=teachlocks.py:Sleeping")`. What changes?
#
# <details><summary>Answer</summary>
#
# Waiters leave their CPUs, so who was preempted gets one soon. Each contended cycle costs switches, so 2 tasks get less than with the ticket lock; but 3 and 4 tasks get more, and 4 no less than 3.
# </details>

# %% [markdown]
# ## Sources
#
# * Ousterhout, *Scheduling Techniques for Concurrent Systems*, ICDCS 1982.
# * Friebel and Biemueller, *How to Deal with Lock Holder Preemption*, Xen Summit 2008.
# * Linux `kernel/locking/mutex.c` (`mutex_spin_on_owner`), `kernel/locking/qspinlock_paravirt.h`.

# %% [markdown]
# ## Result

# %%
user, kernel = (asked.estimates[name] for name in ("user", "kernel"))
print(
    f"The third task on two CPUs takes {100 * (1 - user['3'].mean / user['2'].mean):.0f} % of the throughput away from a ticket lock that can be preempted, "
    f"and {100 * max(0.0, 1 - kernel['3'].mean / kernel['2'].mean):.0f} % from one that cannot."
)
