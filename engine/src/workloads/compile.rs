//! One task after another `gcc -c hello.c`: the driver, cc1 and as, what each does in the directory, and the CPU time
//! between (`docs/gcc-compile.md` says how that was observed). Where the task calls `system()` for it, a shell starts the driver.

use super::arrivals::{served, taken, Requests};
use super::draw::Draw;
use super::process::{Left, Prices};
use super::progress::{Footprint, Progress};
use crate::filesystems::{DirId, File, Filesystem};
use crate::lru::Lru;
use crate::spec::{RunSpec, WorkloadSpec};
use crate::waist::time::from_ns;
use crate::waist::{Account, Machine, Placement, SpawnKind, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Driver, compiler and assembler.
const PROCESSES: Time = 3;

/// The numbers of one compilation.
#[derive(Clone)]
pub struct Params {
    user: Time,
    kernel: Time,
    spread: Draw,
    footprint: Footprint,
    asm_bytes: u32,
    object_bytes: u32,
    object_writes: u32,
    start: Start,
    prices: Prices,
    lru: Rc<Lru>,
    proc_entries: u64,
    shell: Option<Shell>,
    gcc: Gcc,
    cc1: Cc1,
    r#as: As,
}

/// Kernel time of starting a process with vfork and exec, of which who waits and who runs on hang: the parent's until the child is in
/// a queue, and from there until it sleeps; the child's until it may go to another CPU (`sched_exec`), and from there until its
/// parent is woken (`mm_release`); the parent's from there until it sleeps for the child's end. And that of the end: the child's from
/// the wake-up of its parent until it is gone (`exit_notify` to `do_task_dead`), the parent's until `wait4` returns.
#[derive(Clone, Copy, Debug)]
struct Start {
    fork: Time,
    parent: Time,
    exec: Time,
    release: Time,
    wait: Time,
    gone: Time,
    reap: Time,
}

impl Start {
    fn whole(self) -> Time {
        self.fork + self.parent + self.exec + self.release + self.wait + self.gone + self.reap
    }
}

/// CPU time of `sh -c`, and how far into it the driver is started.
#[derive(Clone, Copy, Debug)]
struct Shell {
    user: Time,
    kernel: Time,
    spawn_cc: f64,
    left: Left,
}

/// What one process has of the user time and of the kernel time.
#[derive(Clone, Copy, Debug)]
struct Share {
    user: f64,
    kernel: f64,
}

impl Share {
    fn new(w: &WorkloadSpec, process: &str) -> Self {
        let share = |what| w.number(&format!("{process}.{what}_share"));
        Self { user: share("cpu"), kernel: share("kernel") }
    }
}

/// How far into a process's own time each of its operations comes.
#[derive(Clone, Debug)]
struct Gcc {
    share: Share,
    create_asm: f64,
    spawn_cc1: f64,
    spawn_as: f64,
    unlink_asm: f64,
    left: Left,
}

#[derive(Clone, Debug)]
struct Cc1 {
    share: Share,
    open_asm: f64,
    write_asm: f64,
    left: Left,
}

#[derive(Clone, Debug)]
struct As {
    share: Share,
    unlink_object: f64,
    create_object: f64,
    open_asm: f64,
    write_object: f64,
    left: Left,
}

impl Gcc {
    fn new(w: &WorkloadSpec) -> Self {
        Self {
            share: Share::new(w, "gcc"),
            create_asm: w.number("gcc.create_asm_at"),
            spawn_cc1: w.number("gcc.spawn_cc1_at"),
            spawn_as: w.number("gcc.spawn_as_at"),
            unlink_asm: w.number("gcc.unlink_asm_at"),
            left: Left::new(w, "gcc"),
        }
    }
}

impl Cc1 {
    fn new(w: &WorkloadSpec) -> Self {
        Self {
            share: Share::new(w, "cc1"),
            open_asm: w.number("cc1.open_asm_at"),
            write_asm: w.number("cc1.write_asm_at"),
            left: Left::new(w, "cc1"),
        }
    }
}

impl As {
    fn new(w: &WorkloadSpec) -> Self {
        Self {
            share: Share::new(w, "as"),
            unlink_object: w.number("as.unlink_object_at"),
            create_object: w.number("as.create_object_at"),
            open_asm: w.number("as.open_asm_at"),
            write_object: w.number("as.write_object_at"),
            left: Left::new(w, "as"),
        }
    }
}

impl Params {
    /// From the workload's parameters. Times are multiplied by the machine's speed.
    pub fn new(spec: &RunSpec, w: &WorkloadSpec, lru: Rc<Lru>) -> Result<Self, String> {
        let speed = spec.machine.costs.speed;
        let number = |name: &str| w.number(name);
        let time = |name: &str| from_ns(number(name) * speed);
        let start = Start {
            fork: time("start.fork_ns"),
            parent: time("start.parent_ns"),
            exec: time("start.exec_ns"),
            release: time("start.release_ns"),
            wait: time("start.wait_ns"),
            gone: time("start.gone_ns"),
            reap: time("start.reap_ns"),
        };
        let (sh, gcc, cc1, r#as) = (Left::new(w, "sh"), Gcc::new(w), Cc1::new(w), As::new(w));
        let pages = (gcc.left.pages + cc1.left.pages + r#as.left.pages) * lru.of_process();
        let started = PROCESSES * start.whole();
        let shell = Shell {
            user: time("sh.user_cpu_ns"),
            kernel: time("sh.kernel_cpu_ns").saturating_sub(sh.pages * lru.of_process()),
            spawn_cc: number("sh.spawn_cc_at"),
            left: sh,
        };
        Ok(Self {
            user: time("user_cpu_ns"),
            kernel: time("kernel_cpu_ns").saturating_sub(started + pages),
            start,
            prices: Prices::new(spec),
            lru,
            proc_entries: number("proc_entries") as u64,
            spread: Draw::parse("lognormal", 1e6, number("cpu_cv"))?,
            footprint: Footprint { data: number("footprint_bytes"), code: number("code_bytes") },
            asm_bytes: number("asm_bytes") as u32,
            object_bytes: number("object_bytes") as u32,
            object_writes: (number("object_writes") as u32).max(1),
            shell: (number("shell") > 0.0).then_some(shell),
            gcc,
            cc1,
            r#as,
        })
    }
}

/// What the processes of one task share.
struct Compiler<F> {
    fs: Rc<F>,
    dir: DirId,
    params: Rc<Params>,
    placement: Placement,
    random: RefCell<Xoshiro256PlusPlus>,
    task: u32,
    serial: Cell<u32>,
    asm: Cell<Option<File>>,
    object: Cell<Option<File>>,
}

/// Compiles for ever.
pub async fn run<M: Machine, F: Filesystem<M>>(
    m: M,
    fs: Rc<F>,
    dir: DirId,
    task: u32,
    params: Rc<Params>,
    placement: Placement,
    requests: Requests,
) {
    let random = RefCell::new(m.stream(&format!("compiler {task}")));
    let (serial, asm, object) = (Cell::new(0), Cell::new(None), Cell::new(None));
    let compiler = Rc::new(Compiler { fs, dir, params, placement, random, task, serial, asm, object });
    if requests.is_none() {
        stagger(&m, &compiler).await;
    }
    loop {
        let request = taken(&m, &requests).await;
        m.begin();
        let child = match compiler.params.shell {
            Some(_) => Child::spawn(&m, &compiler, sh).await,
            None => Child::spawn(&m, &compiler, gcc).await,
        };
        child.wait(&m, &compiler.params).await;
        m.end("compile", true);
        served(&m, request);
    }
}

/// Tasks do not start in step: each begins at a random point of one compilation's time.
async fn stagger<M: Machine, F>(m: &M, c: &Compiler<F>) {
    let whole = c.params.user + c.params.kernel;
    let fraction = (rand_core::RngCore::next_u32(&mut *c.random.borrow_mut()) % 1000) as Time;
    m.sleep(whole * fraction / 1000).await;
}

/// A child process made with vfork: the parent sleeps until it has called exec, and again until it exits.
struct Child {
    exec: u32,
    exit: u32,
    start: Start,
}

impl Child {
    async fn spawn<M: Machine, F: Filesystem<M>, P, Fut>(m: &M, c: &Rc<Compiler<F>>, body: P) -> Self
    where
        P: FnOnce(M, Rc<Compiler<F>>) -> Fut + 'static,
        Fut: std::future::Future<Output = ()> + 'static,
    {
        let child = Self { exec: m.new_completion(), exit: m.new_completion(), start: c.params.start };
        let (exec, exit, start) = (child.exec, child.exit, child.start);
        let c = c.clone();
        m.run(Account::System, start.fork).await;
        m.spawn(c.placement, SpawnKind::Helper, move |m| async move {
            m.run(Account::System, start.exec).await;
            m.exec().await;
            m.run(Account::System, start.release).await;
            m.complete(exec).await;
            body(m.clone(), c.clone()).await;
            c.params.prices.exits(&m);
            m.exiting();
            m.complete(exit).await;
            m.run(Account::System, start.gone).await;
        });
        child
    }

    async fn wait<M: Machine>(self, m: &M, params: &Params) {
        m.run(Account::System, self.start.parent).await;
        m.wchan("do_wait");
        m.wait_for(self.exec).await;
        m.run(Account::System, self.start.wait).await;
        m.wchan("do_wait");
        m.wait_for(self.exit).await;
        m.run(Account::System, self.start.reap).await;
        params.prices.reaped(m, params.proc_entries);
        m.drop_completion(self.exec);
        m.drop_completion(self.exit);
    }
}

/// A share of so much user and kernel time, and these pages.
fn progress<F>(
    c: &Compiler<F>,
    (user, kernel): (Time, Time),
    share: Share,
    (footprint, pages): (Footprint, u64),
) -> Progress {
    let spread = c.params.spread.draw(&mut c.random.borrow_mut()) as f64 / from_ns(1e6) as f64;
    let scaled = |time: Time, share: f64| (time as f64 * share * spread) as Time;
    Progress::new(c.params.lru.clone(), (scaled(user, share.user), scaled(kernel, share.kernel)), footprint, pages)
}

/// That of a process of the compiler.
fn of_compiler<F>(c: &Compiler<F>, share: Share, left: Left) -> Progress {
    progress(c, (c.params.user, c.params.kernel), share, (c.params.footprint.times(share.user), left.pages))
}

/// `sh -c "cc -c ..."`, which starts the driver and waits for it.
async fn sh<M: Machine, F: Filesystem<M>>(m: M, c: Rc<Compiler<F>>) {
    let shell = c.params.shell.expect("it was started");
    let mut cpu =
        progress(&c, (shell.user, shell.kernel), Share { user: 1.0, kernel: 1.0 }, (Footprint::NONE, shell.left.pages));
    c.params.prices.mapped(&m, shell.left);
    cpu.to(&m, shell.spawn_cc).await;
    Child::spawn(&m, &c, gcc).await.wait(&m, &c.params).await;
    cpu.exit(&m).await;
}

async fn gcc<M: Machine, F: Filesystem<M>>(m: M, c: Rc<Compiler<F>>) {
    let p = c.params.gcc.clone();
    let mut cpu = of_compiler(&c, p.share, p.left);
    c.params.prices.mapped(&m, p.left);
    let name = asm_name(&c);
    cpu.to(&m, p.create_asm).await;
    let Ok(asm) = c.fs.create(&m, c.dir, &name).await else { return m.give_up("no space left") };
    c.fs.close(&m, &asm).await;
    c.asm.set(Some(asm));
    cpu.to(&m, p.spawn_cc1).await;
    Child::spawn(&m, &c, cc1).await.wait(&m, &c.params).await;
    cpu.to(&m, p.spawn_as).await;
    Child::spawn(&m, &c, assemble).await.wait(&m, &c.params).await;
    cpu.to(&m, p.unlink_asm).await;
    if let Some(asm) = c.asm.take() {
        c.fs.unlink(&m, c.dir, &name, asm).await;
    }
    cpu.exit(&m).await;
}

async fn cc1<M: Machine, F: Filesystem<M>>(m: M, c: Rc<Compiler<F>>) {
    let p = c.params.cc1.clone();
    let mut cpu = of_compiler(&c, p.share, p.left);
    c.params.prices.mapped(&m, p.left);
    let mut asm = c.asm.get().expect("the driver has created it");
    cpu.to(&m, p.open_asm).await;
    c.fs.open_truncating(&m, c.dir, &asm).await;
    cpu.to(&m, p.write_asm).await;
    c.fs.write(&m, &mut asm, c.params.asm_bytes).await;
    c.fs.close(&m, &asm).await;
    c.asm.set(Some(asm));
    cpu.exit(&m).await;
}

async fn assemble<M: Machine, F: Filesystem<M>>(m: M, c: Rc<Compiler<F>>) {
    let p = c.params.r#as.clone();
    let mut cpu = of_compiler(&c, p.share, p.left);
    c.params.prices.mapped(&m, p.left);
    let name = object_name(&c);
    cpu.to(&m, p.unlink_object).await;
    if let Some(old) = c.object.take() {
        c.fs.unlink(&m, c.dir, &name, old).await;
    }
    cpu.to(&m, p.create_object).await;
    let Ok(mut object) = c.fs.create(&m, c.dir, &name).await else { return m.give_up("no space left") };
    cpu.to(&m, p.open_asm).await;
    if let Some(asm) = c.asm.get() {
        c.fs.open(&m, c.dir, &asm).await;
        c.fs.read(&m, &asm, (0, c.params.asm_bytes)).await;
    }
    cpu.to(&m, p.write_object).await;
    for _ in 0..c.params.object_writes {
        c.fs.write(&m, &mut object, c.params.object_bytes / c.params.object_writes).await;
    }
    c.fs.close(&m, &object).await;
    c.object.set(Some(object));
    cpu.exit(&m).await;
}

/// `ccXXXXXX.s`, never the same twice in a run.
fn asm_name<F>(c: &Compiler<F>) -> [u8; 10] {
    let serial = c.serial.get();
    c.serial.set(serial.wrapping_add(1));
    let mut name = *b"cc000000.s";
    let mut number = u64::from(serial) * 1000 + u64::from(c.task);
    // Spread like the random letters of mkstemp, without repeats: a multiplication by a unit modulo 36^6.
    number = number.wrapping_mul(1_664_525) % 36u64.pow(6);
    for letter in name[2..8].iter_mut().rev() {
        *letter = b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize];
        number /= 36;
    }
    name
}

/// `hNNN.o`, the task's own output.
fn object_name<F>(c: &Compiler<F>) -> [u8; 6] {
    let digit = |place: u32| b'0' + (c.task / place % 10) as u8;
    [b'h', digit(100), digit(10), digit(1), b'.', b'o']
}
