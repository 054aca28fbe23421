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
# # 7. Readers and writers
#
# Readers do not disturb each other, so let them in together. When is a reader/writer lock better than a plain one?

# %%
from simfs.lessons import lesson

asked = lesson("readers", seed=1)
asked

# %% [markdown]
# ## Predict
#
# A guess: readers cost nothing, writers take turns. With a share `r` of readers the lock can do `1 / ((1 - r) hold)`, and tasks can do `16 / (think + hold)` at most.

# %%
guess = {"0": 3_000_000, "0.5": 6_000_000, "0.9": 13_000_000, "0.99": 13_000_000, "1": 13_000_000}

# %% [markdown]
# ## Reveal

# %%
asked.mark(guess)

# %%
asked.figure(guess)

# %% [markdown]
# ## Three surprises
#
# 1. With half of the holds for reading, the rwsem is *slower than a plain spinlock*. Its readers do not spin: who meets a writer sleeps, and a wake-up takes longer than the hold.
# 2. With readers alone the curve does not get to 13 million. Each reader writes the count of readers, twice, and its cache line can be in one place only.
# 3. One writer in a hundred costs far more than one per cent with a lock whose readers sleep.

# %%
ideal = 16 / (1e-6 + 200e-9)
shares = {
    asked.result.title(name): {at: 100 * found.mean / ideal for at, found in curve.items()}
    for name, curve in asked.estimates.items()
}

from simfs.reports.figures.lesson import Line, lines

lines(
    [Line(name, curve) for name, curve in shares.items()],
    "share of holds that only read",
    "throughput, 100 is without a lock (%)",
)

# %% [markdown]
# ## A measured curve
#
# From 5.3 to 5.10 readers of an rwsem spun, too; 5.11 took that out again. Waiman Long measured both with 2 to 96 threads, half of the holds for reading. Two numbers are fitted to rows with two threads (`fitted` gives what `simfs validate` found).

# %%
import simfs
from simfs.lessons import fitted

settings = fitted("rwsem-reader-spin")
measured = simfs.load("rwsem-reader-spin", *settings).run(variants=["moderate"], quick=True, progress=False)
measured.figure("throughput")

# %% [markdown]
# The order is right up to 16 threads, readers that spin are faster, but the two are too far apart. From 32 threads on both locks are alike on the real machine, and in the simulation they are not: it has spinning readers go on too well. Misses like this one are told
# in the predictions' page of the data set.

# %% [markdown]
# ## Exercises
#
# 1. How many readers a second can one cache line serve, if a transfer takes 60 ns and each reader needs two?
#
# <details><summary>Answer</summary>
#
# 1 / (2 x 60 ns) = 8.3 million, however many CPUs there are.
# </details>
#
# 2. What does a per-CPU lock (`percpu-rwsem`) do about it, and who pays?
#
# <details><summary>Answer</summary>
#
# Each CPU counts its readers in a line of its own: nothing moves. A writer has to wait for a grace period and look at all CPUs: milliseconds. Good where writers are very rare, as when a filesystem is frozen.
# </details>
#
# 3. Ask for it: `asked.changed("workload.lock=percpu-rwsem").run().points`.
#
# <details><summary>Answer</summary>
#
# With readers alone it gets near the ideal, which no other lock here does; with 1 % of writers it is far worse than all others.
# </details>

# %% [markdown]
# ## Sources
#
# * Courtois, Heymans, Parnas, *Concurrent Control with "Readers" and "Writers"*, CACM 14 (1971).
# * Linux `kernel/locking/qrwlock.c`, `rwsem.c`, `percpu-rwsem.c`.
# * Measured: Waiman Long, commit 617f3ef95177 (2020); `scenarios/measured/rwsem-reader-spin-removed-2020.yaml`.

# %% [markdown]
# ## Result

# %%
rwsem, plain, spinning = (asked.estimates[name] for name in ("rwsem", "spinlock", "qrwlock"))
print(
    f"With half of the holds for reading the rwsem gives {100 * rwsem['0.5'].mean / plain['0.5'].mean:.0f} % of a plain spinlock; with readers alone {rwsem['1'].mean / plain['1'].mean:.1f} times as much. "
    f"The first per cent of writers costs the rwsem {100 * (1 - rwsem['0.99'].mean / rwsem['1'].mean):.0f} % and the spinning lock {100 * (1 - spinning['0.99'].mean / spinning['1'].mean):.0f} %."
)
