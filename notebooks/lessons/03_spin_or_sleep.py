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
# # 3. Spin or sleep
#
# Who waits for a lock can stay on the CPU and look, or leave it and be woken. When is which better, and for whom?

# %%
from simfs.lessons import lesson

asked = lesson("spin-or-sleep", seed=3)
asked

# %% [markdown]
# ## Predict
#
# A guess that forgets the wake-up: contended, a cycle takes a hold; with short holds the tasks' thinking limits.

# %%
guess = {"500ns": 390_000, "2us": 340_000, "8us": 125_000, "32us": 31_000, "128us": 7_800}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## What a wake-up costs
#
# The lock is given to a sleeper. From then on nobody can use it until that sleeper runs: its CPU gets an interrupt, leaves its idle state and switches.
# `1 / throughput - hold` is what a hand-over takes, where the lock is always wanted.

# %%
from simfs.reports.figures.lesson import Line, lines
from simfs.scenario.sections.units import duration

titles = {name: asked.result.title(name) for name in asked.estimates}
hand_over = {
    name: {
        at: (1e9 / found.mean - duration(at)) / 1e3
        for at, found in curve.items()
        if 2e3 <= duration(at) <= 32e3
    }
    for name, curve in asked.estimates.items()
}
lines(
    [Line(titles[name], curve) for name, curve in hand_over.items()],
    "mean hold",
    "cycle without the hold (us)",
)

# %% [markdown]
# It grows with the hold, too: the longer a CPU idles, the deeper it sleeps, and the longer it takes to wake up. That is why "a wake-up costs 2 us" is half of the truth.
#
# ## What spinning costs
#
# Not the lock's time but CPU time that others could have used.

# %%
points = asked.answer.points
spent = {
    titles[name]: {
        at: own.spin_percent
        for at, own in zip(asked.places, points[points.variant == name].itertuples(), strict=True)
    }
    for name in titles
}
lines([Line(name, curve) for name, curve in spent.items()], "mean hold", "CPU time spent spinning (%)")

# %% [markdown]
# With more tasks than CPUs that time is somebody's. So the break-even is not one number. A rule that is never worse than twice the best: **spin for as long as sleeping and waking takes, then
# sleep** (Karlin and others, 1991). Linux's mutex has another: spin while the owner runs.

# %% [markdown]
# ## A measurement, and a miss
#
# In 2013 the lock of the anonymous memory tree became an rwsem, whose writers did not spin then, in place of a mutex, whose waiters do. A mail load on 40 CPUs lost 8 % and switched half as often again (Tim Chen).
# Think and hold are fitted to the mutex's two rows (`fitted` gives what `simfs validate` found), and the rwsem is predicted.

# %%
import simfs
from simfs.lessons import fitted

measured = simfs.load("mutex-vs-rwsem", *fitted("mutex-vs-rwsem")).run(quick=True, progress=False).measured
measured[measured["role"] != "info"][["variant", "metric", "role", "measured", "simulated"]].round(0)

# %% [markdown]
# The direction is right: the rwsem idles more. The size is absurdly wrong, and that is the lesson. All of a mail server's life is put into one think time here; a real mail server has other
# work while some of its tasks sleep, so its CPUs do not idle and do not sleep deeply. A load of one lock is a magnifying glass, not a mail server.

# %% [markdown]
# ## Exercises
#
# 1. A hold takes 1 us, a sleep and a wake-up 10 us of CPU time in all. For how long should one spin before one sleeps, if one knows nothing else?
#
# <details><summary>Answer</summary>
#
# For 10 us. If the lock comes before, spinning was right. If it comes right after, one has paid twice what the best choice costs, and never more.
# </details>
#
# 2. Why may code that holds a spinlock not sleep?
#
# <details><summary>Answer</summary>
#
# Who waits for it spins with preemption off. If the holder is off CPU, all waiters burn their CPUs until it runs again, and if they occupy all CPUs it never does.
# </details>
#
# 3. The semaphore's curve at 500 ns is far below its curve's bound `1 / think`. Which other lock sleeps too and does better? (Lesson 4.)
#
# <details><summary>Answer</summary>
#
# One whose wake-up is only a hint: others may use the lock while the sleeper wakes up.
# </details>

# %% [markdown]
# ## Sources
#
# * Karlin, Li, Manasse, Owicki, *Empirical Studies of Competitive Spinning for a Shared-Memory Multiprocessor*, SOSP 1991.
# * Linux `kernel/locking/semaphore.c`, `kernel/locking/mutex.c` (`mutex_spin_on_owner`).
# * Measured: Tim Chen, linux-mm, 2013-06-13; `scenarios/measured/mutex-vs-rwsem-exim-2013.yaml`.

# %% [markdown]
# ## Result

# %%
sleeping, spinning = (asked.estimates[name] for name in ("sleeping", "spinning"))
short, long = (spinning[at].mean / sleeping[at].mean for at in ("500ns", "128us"))
print(
    f"With holds of 0.5 us spinning gives {short:.1f} times what sleeping gives, with holds of 128 us {long:.2f} times. "
    f"For that it burns {spent[titles['spinning']]['128us']:.0f} % of all CPU time."
)
