//! CPUs: their `topology`, what each of them does (`cpu`), and how its time is spent: `segment` and `turns` book it to tasks, `accounts` keeps the
//! window's; `pace` and `smt` make the same code take longer or shorter; `governor` (`menu`, `teo`, `haltpoll`), `polling`, `into_idle` and `idle_exit` are idling, `wheel` tells when timers ring.

pub(in crate::machine) mod accounts;
pub(in crate::machine) mod cpu;
pub(in crate::machine) mod cpu_set;
pub(in crate::machine) mod governor;
mod haltpoll;
pub(in crate::machine) mod idle_exit;
pub(in crate::machine) mod into_idle;
mod menu;
pub(in crate::machine) mod pace;
pub(in crate::machine) mod polling;
pub(in crate::machine) mod segment;
pub(in crate::machine) mod smt;
mod teo;
pub(in crate::machine) mod topology;
pub(in crate::machine) mod turns;
pub(in crate::machine) mod wheel;
