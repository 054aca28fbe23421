//! A mix of operations from the scenario: drawn by weight, or one after the other as will-it-scale's loops are.

use super::acts::{Act, Actor, Full, Picks, Which};
use super::arrivals::{served, taken, Requests};
use super::draw::{uniform, Choice, Draw, Places};
use super::format::NameFormat;
use crate::filesystems::Filesystem;
use crate::nearest::hint;
use crate::spec::WorkloadSpec;
use crate::waist::time::from_ns;
use crate::waist::{Account, Machine, Time};
use serde_json::Value;
use std::rc::Rc;

/// One of the operations.
#[derive(Clone, Debug)]
struct Operation {
    name: &'static str,
    act: Act,
    /// Weights of this and all earlier ones, of the sum of all.
    upto: f64,
    bytes: u32,
    think: Draw,
    /// How often in a row.
    repeat: u32,
    /// On which file, where it needs one.
    on: Which,
    /// The file is open with `O_SYNC`: a write ends with an fsync of its range (`generic_write_sync`).
    sync: bool,
    /// Which blocks of the file it reads or writes over.
    places: Places,
}

/// The mix of a scenario.
#[derive(Clone, Debug)]
pub struct Mix {
    operations: Vec<Operation>,
    in_turn: bool,
    /// Files that a set has before the first operation.
    pub files: u32,
    /// Bytes of each.
    pub file_bytes: u32,
    /// None of them is in memory.
    pub cold: bool,
    /// The tasks use one set of files.
    pub shared: bool,
    /// Which of them is taken where any may be.
    pub choice: Choice,
    /// The names of new files and directories.
    pub format: Rc<NameFormat>,
    /// So many names a task has in its directories together, and uses again; without that each once.
    pub names: Option<u32>,
    /// How much of a walk is over when the run begins; of the tasks each a further part, if they are apart.
    walked: f64,
    walks_apart: bool,
    user: Time,
    /// It chooses files under a mutex.
    pub picks: Option<Picks>,
    /// Within which tasks begin.
    begin: Time,
    /// A task ends when it has no file left.
    ends: bool,
}

impl Mix {
    /// From the workload's parameters; `speed` multiplies the loop's own time in user mode.
    pub fn new(w: &WorkloadSpec, speed: f64) -> Result<Self, String> {
        let given =
            w.params.get("operations").and_then(Value::as_array).ok_or("workload.params.operations: is no list")?;
        let total: f64 = given.iter().map(|o| number(o, "weight", 1.0)).sum();
        let mut upto = 0.0;
        let operations = given.iter().enumerate().map(|(place, o)| {
            upto += number(o, "weight", 1.0) / total;
            Operation::new(o, upto).map_err(|e| format!("workload.params.operations.{place}: {e}"))
        });
        Ok(Self {
            operations: operations.collect::<Result<_, _>>()?,
            in_turn: w.word("order") == "in-turn",
            files: w.number("files") as u32,
            file_bytes: w.number("file_bytes") as u32,
            cold: w.number("cold") > 0.0,
            shared: w.word("file_set") == "shared",
            choice: Choice::of(w)?,
            format: Rc::new(NameFormat::of(w)?),
            names: w.given("names").map(|names| names as u32),
            walked: w.number("walked"),
            walks_apart: w.number("walks_apart") > 0.0,
            user: from_ns(w.number("user_ns") * speed),
            picks: Picks::of(w, speed),
            begin: from_ns(w.number("begin_ns")),
            ends: w.number("ends") > 0.0,
        })
    }
}

impl Mix {
    /// How much of its walk a task has behind it, by its place among those of its load.
    pub fn walked(&self, place: usize, tasks: usize) -> f64 {
        let apart = if self.walks_apart { place as f64 / tasks as f64 } else { 0.0 };
        (self.walked + apart).fract()
    }
}

/// What a mix says of an operation.
const KEYS: [&str; 12] = [
    "op",
    "weight",
    "bytes",
    "think_ns",
    "think_distribution",
    "think_cv",
    "think_values",
    "think_weights",
    "repeat",
    "on",
    "sync",
    "places",
];

impl Operation {
    fn new(o: &Value, upto: f64) -> Result<Self, String> {
        let unread = o.as_object().and_then(|o| o.keys().find(|key| !KEYS.contains(&key.as_str())));
        if let Some(key) = unread {
            return Err(format!("nothing reads '{key}'{}", hint(key, KEYS)));
        }
        let (name, act) = Act::named(o["op"].as_str().unwrap_or_default())?;
        let think = Draw::of_entry(o, "think")?;
        let on = Which::named(o["on"].as_str().unwrap_or("any"))?;
        Ok(Self {
            name,
            act,
            upto,
            on,
            sync: o["sync"].as_bool().unwrap_or(false),
            places: o["places"].as_str().map_or(Ok(Places::Sequential), Places::named)?,
            bytes: number(o, "bytes", 4096.0) as u32,
            think,
            repeat: number(o, "repeat", 1.0) as u32,
        })
    }
}

fn number(o: &Value, key: &str, default: f64) -> f64 {
    o[key].as_f64().unwrap_or(default)
}

/// Runs the mix for ever or as long as there are files, from some moment within the time in which tasks begin.
pub async fn run<M: Machine, F: Filesystem<M>>(m: M, mut actor: Actor<M, F>, mix: Rc<Mix>, requests: Requests) {
    if mix.begin > 0 {
        m.sleep((uniform(actor.random()) * mix.begin as f64) as Time).await;
    }
    while !(mix.ends && actor.files() == 0) {
        let request = taken(&m, &requests).await;
        if turn(&m, &mut actor, &mix).await.is_err() {
            return;
        }
        served(&m, request);
    }
}

/// One drawn operation, or all of them in turn.
async fn turn<M: Machine, F: Filesystem<M>>(m: &M, actor: &mut Actor<M, F>, mix: &Mix) -> Result<(), Full> {
    if mix.in_turn {
        let last = mix.operations.len() - 1;
        for (place, operation) in mix.operations.iter().enumerate() {
            repeated(m, actor, operation, mix.user, place == last).await?;
        }
        return Ok(());
    }
    let drawn = uniform(actor.random());
    let operation = mix.operations.iter().find(|o| drawn < o.upto).unwrap_or(&mix.operations[mix.operations.len() - 1]);
    repeated(m, actor, operation, mix.user, true).await
}

/// An operation as often as it is done in a row, which counts once.
async fn repeated<M: Machine, F: Filesystem<M>>(
    m: &M,
    actor: &mut Actor<M, F>,
    operation: &Operation,
    user: Time,
    counted: bool,
) -> Result<(), Full> {
    actor.places = operation.places;
    for piece in 0..operation.repeat {
        actor.piece = piece;
        one(m, actor, operation, user, counted && piece + 1 == operation.repeat).await?;
    }
    Ok(())
}

async fn one<M: Machine, F: Filesystem<M>>(
    m: &M,
    actor: &mut Actor<M, F>,
    operation: &Operation,
    user: Time,
    counted: bool,
) -> Result<(), Full> {
    let think = operation.think.draw(actor.random());
    m.run(Account::User, think + user).await;
    m.begin();
    actor.act(operation.on, operation.act, operation.bytes).await?;
    if operation.sync {
        actor.write_sync().await;
    }
    m.end(operation.name, counted);
    Ok(())
}
