//! Named costs, looked up once when a filesystem is built.

use crate::kernel::Rules;
use crate::lru::Lru;
use crate::waist::time::from_ns;
use crate::waist::Time;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Of `HZ=250`.
const TICK: Time = 4_000_000_000;

/// What filesystems are built from: the cost tables of a run, how fast the machine is compared with the one they were measured
/// on, how long it pauses, and the rules of the kernel.
pub struct Costs<'a> {
    tables: Vec<&'a BTreeMap<String, f64>>,
    speed: f64,
    rules: Rules,
    pause: Time,
    cpus_per_node: u32,
    tick: Time,
    memory: Option<u64>,
    load_ns: f64,
    lru: Option<Rc<Lru>>,
    asked: Option<RefCell<BTreeSet<String>>>,
}

impl<'a> Costs<'a> {
    /// `speed` multiplies every time of the tables: 2 is a machine half as fast. `pause` is `cpu_relax` of this one.
    pub fn new(tables: Vec<&'a BTreeMap<String, f64>>, speed: f64, rules: Rules, pause: Time) -> Self {
        Self {
            tables,
            speed,
            rules,
            pause,
            cpus_per_node: u32::MAX,
            tick: TICK,
            memory: None,
            load_ns: 0.0,
            lru: None,
            asked: None,
        }
    }

    /// Has whatever is asked for, and remembers the names.
    pub fn asking() -> Self {
        Self { asked: Some(RefCell::default()), ..Self::new(Vec::new(), 1.0, Rules::default(), 0) }
    }

    /// The names that were asked for.
    pub fn asked(self) -> BTreeSet<String> {
        self.asked.map(RefCell::into_inner).unwrap_or_default()
    }

    /// The same on a machine with so many CPUs on a node; else it has one.
    pub fn on_nodes_of(self, cpus_per_node: u32) -> Self {
        Self { cpus_per_node, ..self }
    }

    /// The same with ticks of this length; else they take 4 ms.
    pub fn ticking(self, tick: Time) -> Self {
        Self { tick, ..self }
    }

    /// Length of a tick.
    pub fn tick(&self) -> Time {
        self.tick
    }

    /// The same on a machine with so much memory, whose loads from memory take so long; else neither is known.
    pub fn with_memory(self, memory: Option<u64>, load_ns: f64) -> Self {
        Self { memory, load_ns, ..self }
    }

    /// Bytes of memory, if the machine says so.
    pub fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Nanoseconds of a load from memory; 0 where all data are always warm.
    pub fn load_ns(&self) -> f64 {
        self.load_ns
    }

    /// The same with the lists of the machine's pages.
    pub fn with_lists(self, lru: Lru) -> Self {
        Self { lru: Some(Rc::new(lru)), ..self }
    }

    /// The lists of the machine's pages.
    pub fn lru(&self) -> Rc<Lru> {
        self.lru.clone().expect("whoever builds a filesystem brings them")
    }

    /// CPUs of a node.
    pub fn cpus_per_node(&self) -> u32 {
        self.cpus_per_node
    }

    /// `cpu_relax`.
    pub fn pause(&self) -> Time {
        self.pause
    }

    /// The rules of the kernel.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// The plain number of a name: a count, say.
    pub fn number(&self, name: &str) -> Result<f64, String> {
        if let Some(asked) = &self.asked {
            asked.borrow_mut().insert(name.to_owned());
            return Ok(1.0);
        }
        let found = self.tables.iter().find_map(|table| table.get(name));
        found.copied().ok_or_else(|| format!("costs: '{name}' is missing"))
    }

    /// The sum of the named times.
    pub fn sum(&self, names: &[&str]) -> Result<Time, String> {
        let total: Result<f64, String> = names.iter().map(|name| self.number(name)).sum();
        Ok(from_ns(total? * self.speed))
    }
}

/// Declares a struct of times, each the sum of named costs: `cost_table!(Create { walk: ["vfs.walk"], ... })`.
#[macro_export]
macro_rules! cost_table {
    ($(#[$doc:meta])* $vis:vis $name:ident { $($field:ident: [$($cost:literal),+ $(,)?]),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        $vis struct $name { $($vis $field: $crate::waist::Time),+ }

        impl $name {
            $vis fn new(costs: &$crate::costs::Costs<'_>) -> Result<Self, String> {
                Ok(Self { $($field: costs.sum(&[$($cost),+])?),+ })
            }
        }
    };
}
