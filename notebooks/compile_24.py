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
# # From a question to a what-if
#
# 24 compilers whose temporary files land in one XFS directory: what does that cost, and which lock is to blame?
# This notebook asks `compile-24`, looks at the curve, sweeps the compilers' CPU time, and then changes one lock
# at a time. Runs are short here (`quick=True`): a first look, with intervals that say so.

# %%
import simfs

question = simfs.load("compile-24")
question

# %% [markdown]
# ## The curve
#
# The scenario fits one number, the CPU time of a compile, to one measured row of ext4. All else is predicted.

# %%
answer = question.run(quick=True)
for fit in answer.result.fits:
    print(fit.sentence)

# %%
answer.figure("throughput")

# %% [markdown]
# Tables are pandas; the unit of each column is in `attrs["units"]`.

# %%
points = answer.points
at_24 = points[points["tasks"] == 24].set_index("variant")
print(points.attrs["units"]["throughput_per_s"])
at_24[["throughput_per_s", "ci_low_per_s", "ci_high_per_s", "idle_percent"]].round(1)

# %% [markdown]
# The same as arrays over variant and tasks: what a directory per task and 49 allocation groups give back.

# %%
arrays = answer.to_xarray()
gain = arrays["throughput_per_s"].sel(variant="xfs-49-per-task") / arrays["throughput_per_s"].sel(
    variant="xfs"
)
gain.round(2).to_series()

# %% [markdown]
# ## Which lock
#
# The locks of one directory, by the time that tasks waited for them, and the split of their holders' time.

# %%
locks = answer.locks
waited = locks[(locks["variant"] == "xfs") & (locks["tasks"] == 24)].set_index("lock")
waited[["type", "contended", "wait_total_ns", "holder_running_ns", "holder_sleeping_ns"]].head(4)

# %% [markdown]
# ## A sweep
#
# Shorter compiles ask for the lock more often. A Latin hypercube over tasks and CPU time shows where it begins
# to matter. (`out="directory"` would keep the runs, and resume after a kill.)

# %%
swept = question.sweep(
    {"workload.tasks": "1..48", "workload.user_cpu": "5 ms..30 ms"}, design="lhs", points=24, quick=True
)
swept.figure("factors")

# %% [markdown]
# ## A what-if
#
# What would the throughput of one directory be if the AGI were held half as long, or not at all, or were another kind
# of lock? The same random streams, everything else as it is, and the difference with a paired interval.

# %%
what_if = question.whatif(
    "xfs",
    changes=[("xfs.AGI", {"hold_scale": 0.5}), ("xfs.AGI", "remove"), ("xfs.AGI", {"kind": "mutex"})],
    quick=True,
)
for effect in what_if.effects:
    gain = effect.gain_percent
    interval = f"{gain.low:+.1f} to {gain.high:+.1f} %" if gain and gain.low is not None else "no interval"
    print(f"{effect.change:32} {effect.verdict:12} {interval}")
