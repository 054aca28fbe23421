//! Cache lines and caches: `line` is who has a copy, `coherence` what an access costs a task, `rounds` in what order caches that wait for a line have it; `warmth`, `counted`, `blocks` and
//! `recency` say what is still in a cache; `contents` what of a block other CPUs have changed.

pub(in crate::machine) mod blocks;
pub(in crate::machine) mod coherence;
mod coming;
pub(in crate::machine) mod contents;
pub(in crate::machine) mod counted;
pub(in crate::machine) mod line;
pub(in crate::machine) mod recency;
pub(in crate::machine) mod rounds;
pub(in crate::machine) mod warmth;
