//! The engine for a host that has only WebAssembly: no filesystem, no threads, no Python.
//!
//! The host asks for room with [`request`], writes a RunSpec (JSON, UTF-8) there, calls [`run`] or [`watch`], and reads
//! [`reply_length`] bytes at [`reply`]. A trap is a defect of the engine; the reply then says what the panic said.

use simfs_engine::run::{run_json, trace_json};
use std::cell::RefCell;
use std::panic;

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static REPLY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Room for a request of `length` bytes.
#[no_mangle]
pub extern "C" fn request(length: usize) -> *mut u8 {
    panic::set_hook(Box::new(|defect| say(defect.to_string())));
    REQUEST.with_borrow_mut(|room| {
        *room = vec![0; length];
        room.as_mut_ptr()
    })
}

/// Runs the RunSpec: true and its result, or false and what is wrong with it.
#[no_mangle]
pub extern "C" fn run() -> bool {
    answer(|spec| run_json(spec, false))
}

/// The same with what happens at `start` (ps) and later: `result`, `in_force`, `events`, `longest`, as the Python function `watch`.
#[no_mangle]
pub extern "C" fn watch(start: u64) -> bool {
    answer(|spec| {
        let traced = trace_json(spec, start)?;
        let (in_force, events, longest) = (json(&traced.in_force)?, json(&traced.events)?, json(&traced.longest)?);
        Ok(format!(r#"{{"result":{},"in_force":{in_force},"events":{events},"longest":{longest}}}"#, traced.result))
    })
}

/// What the engine was built from.
#[no_mangle]
pub extern "C" fn source() {
    say(simfs_engine::SOURCE.to_owned());
}

/// Where the reply begins.
#[no_mangle]
pub extern "C" fn reply() -> *const u8 {
    REPLY.with_borrow(|bytes| bytes.as_ptr())
}

/// How many bytes it has.
#[no_mangle]
pub extern "C" fn reply_length() -> usize {
    REPLY.with_borrow(Vec::len)
}

fn json(value: &impl serde::Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|e| e.to_string())
}

fn answer(work: impl FnOnce(&str) -> Result<String, String>) -> bool {
    let spec = REQUEST.take();
    let found = std::str::from_utf8(&spec).map_err(|e| e.to_string()).and_then(work);
    let sound = found.is_ok();
    say(found.unwrap_or_else(|problem| problem));
    sound
}

fn say(text: String) {
    REPLY.set(text.into_bytes());
}
