//! The tasks of workloads on a filesystem, and what lies on it when they start.

use crate::costs::Costs;
use crate::draw::Choice;
use crate::filesystems::open_files::files_struct::TableWork;
use crate::filesystems::open_files::thread_group::ThreadGroup;
use crate::filesystems::system_calls::{Operations, Recorded};
use crate::filesystems::{Audit, DirId, Filesystem, InitialNames, ROOT};
use crate::spec::{Directories, FilesystemKind, Load, RunSpec, WorkloadKind, WorkloadSpec};
use crate::waist::time::US;
use crate::waist::{Host, Machine, Placement, SpawnKind, TaskId, Time, Witness};
use crate::workloads::acts::{Actor, Full, Picks, Pool};
use crate::workloads::arrivals::{Arrivals, Requests};
use crate::workloads::binding::{at_nice, placements};
use crate::workloads::fio::{self, Jobs};
use crate::workloads::format::NameFormat;
use crate::workloads::fs_mark::DirectorySet;
use crate::workloads::metadata::{self, Loop, Turn, User};
use crate::workloads::mix::{self, Mix};
use crate::workloads::{compile, dbench, fs_mark};
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

/// One setup task makes the directories and what lies in them, then starts the tasks of the workload; the clock starts then.
pub(super) fn start<H: Host, F: Operations<H::Handle> + Audit>(
    host: &mut H,
    spec: &RunSpec,
    fs: Rc<F>,
    costs: &Costs<'_>,
) -> Result<(), String> {
    let crews = spec.loads().into_iter().map(|load| Crew::new(spec, load, costs)).collect::<Result<Vec<_>, _>>()?;
    let fs = Rc::new(Recorded::new(fs));
    if host.watch(|| fs.clone()) {
        fs.keep();
    }
    let free = spec.filesystem.free_bytes;
    if let Work::Fio(jobs) = crews[0].work {
        return fio_tasks(host, fs, (jobs, free), spec.workload.tasks, placements(&spec.machine, spec.loads()[0]));
    }
    host.spawn(Placement::Anywhere, SpawnKind::Setup, move |m: H::Handle| async move {
        let Ok(sets) = directories(&m, &*fs, &crews).await else { return };
        let mut actors = Vec::new();
        for (number, (crew, dirs)) in crews.iter().zip(&sets).enumerate() {
            match crew.work.actors(&m, &fs, dirs, (crew.tasks.clone(), number as u32)).await {
                Ok(made) => actors.push(made),
                Err(_) => return,
            }
        }
        if crews.iter().any(|crew| crew.synced) {
            fs.sync_all(&m).await;
        }
        if fill_up(&m, &*fs, free).is_err() {
            return;
        }
        for ((crew, dirs), actors) in crews.into_iter().zip(sets).zip(actors) {
            crew.start(&m, &fs, &dirs, actors);
        }
    });
    Ok(())
}

/// The tasks of one load.
struct Crew {
    work: Work,
    workload: WorkloadSpec,
    tasks: Range<u32>,
    placements: Vec<Placement>,
    nice: Option<i32>,
    own: bool,
    subdirectories: usize,
    /// They lie in a directory of the task, or of all tasks, and not in the root.
    below: bool,
    initial_files: u64,
    synced: bool,
    /// Its tasks are threads of one process; whether closed files go to RCU.
    threads: Option<(TableWork, bool)>,
    /// Somebody watches its directories.
    watched: bool,
    /// Its files have lost their names.
    unlinked: bool,
    /// Its tasks use one open file of each.
    shared_open: bool,
    /// How long a `dup` and its `close` take a process.
    dup: Time,
}

impl Crew {
    fn new(spec: &RunSpec, load: Load<'_>, costs: &Costs<'_>) -> Result<Self, String> {
        let w = load.workload;
        let work = Work::new(spec, w, costs)?;
        let is_fio = matches!(work, Work::Fio(_));
        Ok(Self {
            work,
            workload: w.clone(),
            tasks: load.numbers(),
            placements: placements(&spec.machine, load).take(w.tasks as usize).collect(),
            nice: load.nice,
            own: w.directories == Directories::PerTask,
            subdirectories: if is_fio { 1 } else { w.number("subdirectories").max(1.0) as usize },
            below: w.kind == WorkloadKind::FsMark && w.number("subdirectories") > 0.0,
            initial_files: if is_fio { 0 } else { w.number("initial_files") as u64 },
            synced: !is_fio && w.number("synced") > 0.0,
            threads: (w.kind == WorkloadKind::Mix && w.number("threads") > 0.0)
                .then(|| (TableWork::new(spec, w.number("descriptors") as u32), spec.kernel.rules.file_callback)),
            watched: w.kind == WorkloadKind::Mix && w.number("watched") > 0.0,
            unlinked: w.kind == WorkloadKind::Mix && w.number("unlinked") > 0.0,
            shared_open: w.kind == WorkloadKind::Mix && w.number("shared_open") > 0.0,
            dup: TableWork::new(spec, 0).dup(),
        })
    }

    /// How many of its initial files each of these directories has.
    fn initial_names(&self, sets: &Sets) -> u32 {
        let dirs: usize = sets.iter().map(|set| set.dirs.len()).sum();
        (self.initial_files / dirs.max(1) as u64) as u32
    }

    /// Starts its tasks, with the actors that have been made for them.
    fn start<M: Machine, F: Filesystem<M>>(self, m: &M, fs: &Rc<F>, dirs: &Sets, actors: Vec<Actor<M, F>>) {
        let Ok(requests) = Arrivals::of(m, &self.workload, self.tasks.start) else {
            return m.give_up("arrivals that cannot be drawn");
        };
        let group =
            self.threads.map(|(work, callback)| Rc::new(ThreadGroup::new(m, work, self.tasks.clone(), callback)));
        fs.super_block().calls.open_files.set_dup(self.dup);
        let mut actors = actors.into_iter();
        let tasks = self.tasks.len();
        let names = self.initial_names(dirs);
        for (place, (task, placement)) in self.tasks.zip(self.placements).enumerate() {
            let (nice, requests) = (self.nice, requests.clone());
            let who = Starting { task, place: (place, tasks), names, placement, nice, requests };
            let own = &dirs[place % dirs.len()];
            let task = self.work.start(m, fs.clone(), own.clone(), who, actors.next());
            if self.watched {
                fs.super_block().calls.watch(task, own.dirs[0]);
            }
            if self.unlinked {
                fs.super_block().calls.lose_names(task);
            }
            if self.shared_open {
                fs.super_block().calls.open_files.share(task);
            }
            if let Some(group) = &group {
                fs.super_block().thread_groups.put(task, group.clone());
            }
        }
    }
}

/// Directories of every task, or of all tasks of a load.
type Sets = Vec<DirectorySet>;

/// Makes the directories of all loads, with the files that lie in them; loads that share theirs share them with each other.
async fn directories<M: Machine, F: Filesystem<M> + Witness>(m: &M, fs: &F, crews: &[Crew]) -> Result<Vec<Sets>, Full> {
    let sharing = || crews.iter().filter(|crew| !crew.own);
    let wide = sharing().map(|crew| crew.subdirectories).max().unwrap_or(0);
    let files = sharing().map(|crew| crew.initial_files).max().unwrap_or(0);
    let (mut shared, mut made, mut all) = (Vec::new(), 0..u32::MAX, Vec::new());
    for crew in crews {
        let (sets, width, initial_files) = match crew.own {
            true => (crew.tasks.len(), crew.subdirectories, crew.initial_files),
            false if shared.is_empty() => (1, wide, files),
            false => (0, 0, 0),
        };
        let mut new = new_sets(m, fs, &mut made, (sets, width, crew.below)).await?;
        come_to_rest(m, fs).await;
        let dirs: Vec<DirId> = new.iter().flat_map(|set: &DirectorySet| set.dirs.iter().copied()).collect();
        if initial_files > 0 {
            let names = crew.work.initial_names(initial_files / dirs.len() as u64);
            let names = InitialNames { makers: new.len(), ..names };
            if fs.fill(&dirs, initial_files, names).is_err() {
                return Err(full(m, "no space left for the initial files"));
            }
        }
        if !crew.own && shared.is_empty() {
            shared = std::mem::take(&mut new);
        }
        let first =
            |set: &DirectorySet| DirectorySet { above: set.above, dirs: set.dirs[..crew.subdirectories].into() };
        all.push(if crew.own { new } else { shared.iter().map(first).collect() });
    }
    Ok(all)
}

/// So many sets of so many new directories each: in the root, or in a new directory for each set.
async fn new_sets<M: Machine, F: Filesystem<M>>(
    m: &M,
    fs: &F,
    numbers: &mut Range<u32>,
    (sets, width, below): (usize, usize, bool),
) -> Result<Sets, Full> {
    let mut above = vec![ROOT; sets];
    if below {
        for set in &mut above {
            *set = new_directory(m, fs, ROOT, numbers).await?;
        }
    }
    let mut new = Vec::new();
    for above in above {
        let mut dirs = Vec::new();
        for _ in 0..width {
            dirs.push(new_directory(m, fs, above, numbers).await?);
        }
        new.push(DirectorySet { above, dirs: dirs.into() });
    }
    Ok(new)
}

async fn new_directory<M: Machine, F: Filesystem<M>>(
    m: &M,
    fs: &F,
    parent: DirId,
    numbers: &mut Range<u32>,
) -> Result<DirId, Full> {
    let name = format!("d{:03}", numbers.next().unwrap_or_default());
    fs.mkdir(m, parent, name.as_bytes()).await.map_err(|_| full(m, "no space left for the directories"))
}

/// Waits until nothing goes on in the background: files that are filled in enter the structures past all locks.
async fn come_to_rest<M: Machine>(m: &M, fs: &impl Witness) {
    while fs.under_way().is_some() {
        m.sleep(1_000 * US).await;
    }
}

fn full<M: Machine>(m: &M, what: &'static str) -> Full {
    m.give_up(what);
    Full
}

/// Other files take what is not to be free.
fn fill_up<M: Machine, F: Filesystem<M>>(m: &M, fs: &F, free: Option<u64>) -> Result<(), Full> {
    match free.map(|bytes| fs.fill_up(bytes)) {
        Some(Err(_)) => Err(full(m, "no space left of as much as filesystem.free says, beside the files of the load")),
        _ => Ok(()),
    }
}

/// One setup task lays the files out, then starts the jobs.
fn fio_tasks<H: Host, F: Filesystem<H::Handle>>(
    host: &mut H,
    fs: Rc<F>,
    (jobs, free): (Jobs, Option<u64>),
    tasks: u32,
    placements: impl Iterator<Item = Placement> + 'static,
) -> Result<(), String> {
    host.spawn(Placement::Anywhere, SpawnKind::Setup, move |m: H::Handle| async move {
        let Ok(dir) = fs.mkdir(&m, ROOT, b"fio").await else { return m.give_up("no space left for the directory") };
        let mut files = Vec::new();
        let count = if jobs.own_file { tasks } else { 1 };
        let jobs = jobs.of_files(count);
        for number in 0..count {
            let name = format!("fio.{number}.0");
            match fs.lay_out(&m, dir, name.as_bytes(), jobs.file).await {
                Ok(file) => files.push(file),
                Err(_) => return m.give_up("no space left for the files"),
            }
        }
        if fill_up(&m, &*fs, free).is_err() {
            return;
        }
        for (task, placement) in (0..tasks).zip(placements) {
            let (fs, file) = (fs.clone(), files[task as usize % files.len()]);
            let calling = fs.clone();
            let task = m.spawn(placement, SpawnKind::Foreground, move |m| fio::run(m, calling, file, jobs, task));
            if jobs.watched {
                fs.super_block().calls.watch(task, dir);
            }
        }
    });
    Ok(())
}

/// What each task of a file workload does.
enum Work {
    Loop(Rc<Loop>),
    Compile(Rc<compile::Params>),
    FsMark(Rc<fs_mark::Params>),
    Mix(Rc<Mix>),
    Dbench(Rc<dbench::Params>),
    Fio(Jobs),
}

impl Work {
    fn new(spec: &RunSpec, w: &WorkloadSpec, costs: &Costs<'_>) -> Result<Self, String> {
        let user = costs.sum(&["user.loop"])?;
        let turn = match w.kind {
            WorkloadKind::Create => Turn::Create,
            WorkloadKind::CreateUnlink => Turn::CreateUnlink,
            WorkloadKind::Tmpfile => {
                Turn::Tmpfile { bytes: w.number("write_bytes") as u32, fsync: w.number("fsync") > 0.0 }
            }
            WorkloadKind::Compile => return Ok(Self::Compile(Rc::new(compile::Params::new(spec, w, costs.lru())?))),
            WorkloadKind::FsMark => {
                return Ok(Self::FsMark(Rc::new(fs_mark::Params::new(w, spec.machine.costs.speed)?)))
            }
            WorkloadKind::Dbench => {
                return Ok(Self::Dbench(Rc::new(dbench::Params::new(w, spec.machine.costs.speed)?)))
            }
            WorkloadKind::Mix => return Ok(Self::Mix(Rc::new(Mix::new(w, spec.machine.costs.speed)?))),
            WorkloadKind::Fio => return Ok(Self::Fio(fio_jobs(spec)?)),
            WorkloadKind::LockCycle | WorkloadKind::RangeLock | WorkloadKind::Python => {
                return Err("workload.kind: needs no filesystem".into())
            }
        };
        let times_calls = w.kind == WorkloadKind::Tmpfile && w.number("time_calls") > 0.0;
        let user = User {
            time: user,
            footprint: w.number("footprint_bytes") as u64,
            code: w.number("code_bytes") as u64,
            pages: w.number("process_pages") as u64,
            lru: costs.lru(),
            times_calls,
        };
        Ok(Self::Loop(Rc::new(Loop { turn, user, format: NameFormat::of(w)? })))
    }

    /// Bytes of the names that it gives to files, after so many.
    fn initial_names(&self, files: u64) -> InitialNames {
        match self {
            Self::FsMark(_) => InitialNames { random: true, ..InitialNames::counted(fs_mark::NAME_LENGTH) },
            Self::Loop(turns) => InitialNames::counted(turns.format.name(0, files as u32).len()),
            _ => InitialNames::counted(12),
        }
    }

    /// Who does the operations of mixes and dbench, with the files that there are when they start: each makes one in its turn.
    async fn actors<M: Machine, F: Filesystem<M>>(
        &self,
        m: &M,
        fs: &Rc<F>,
        sets: &[DirectorySet],
        (tasks, load): (Range<u32>, u32),
    ) -> Result<Vec<Actor<M, F>>, Full> {
        let (files, bytes, shared, choice, stays) = match self {
            Self::Mix(mix) => (mix.files, mix.file_bytes, mix.shared, mix.choice, 0.0),
            Self::Dbench(params) => (params.files, params.write_bytes, false, Choice::Random, params.stays),
            _ => return Ok(Vec::new()),
        };
        let cold = matches!(self, Self::Mix(mix) if mix.cold);
        let (format, names) = match self {
            Self::Mix(mix) => (&mix.format, mix.names),
            Self::Dbench(params) => (&params.format, Some(params.names)),
            _ => return Ok(Vec::new()),
        };
        let picks = match self {
            Self::Mix(mix) => mix.picks.map(|picks| (picks, Picks::new_lock(m))),
            _ => None,
        };
        let all = Pool::default();
        let pool = || if shared { all.clone() } else { Pool::default() };
        let actor = |dirs, task| {
            let new = Actor::new(m.clone(), fs.clone(), dirs, pool(), (task, format.clone()));
            new.choosing(choice).reusing(names).staying(stays).picking(picks)
        };
        let mut actors: Vec<_> =
            tasks.enumerate().map(|(place, task)| actor(sets[place % sets.len()].dirs.clone(), task)).collect();
        let everywhere = sets.iter().flat_map(|set| set.dirs.iter().copied()).collect();
        let mut nobody = actor(everywhere, Actor::<M, F>::NOBODY - load);
        for number in 0..files {
            let leaves = cold.then(|| f64::from(number) / f64::from(files));
            for who in if shared { std::slice::from_mut(&mut nobody) } else { &mut actors[..] } {
                who.create_for_set(bytes, leaves).await?;
            }
        }
        if cold {
            let all = if shared { std::slice::from_ref(&nobody) } else { &actors[..] };
            let files: Vec<_> = all.iter().flat_map(Actor::cool).collect();
            fs.drop_caches(m, &files).await;
        }
        if matches!(self, Self::Dbench(_)) {
            fs.sync_all(m).await; // the last commit knows the files of a client that has run for a while
        }
        Ok(actors)
    }

    fn start<M: Machine, F: Filesystem<M>>(
        &self,
        m: &M,
        fs: Rc<F>,
        own: DirectorySet,
        Starting { task, place: (place, tasks), names, placement, nice, requests }: Starting,
        actor: Option<Actor<M, F>>,
    ) -> TaskId {
        let dir = own.dirs[0];
        match self {
            Self::Loop(turns) => {
                let turns = turns.clone();
                starting(m, placement, nice, move |m| metadata::run(m, fs, dir, task, turns, requests))
            }
            Self::Fio(_) => unreachable!("jobs start on their files"),
            Self::Compile(params) => {
                let params = params.clone();
                starting(m, placement, nice, move |m| compile::run(m, fs, dir, task, params, placement, requests))
            }
            Self::FsMark(params) => {
                let params = params.clone();
                starting(m, placement, nice, move |m| fs_mark::run(m, fs, own, task, params))
            }
            Self::Dbench(params) => {
                let params = params.clone();
                let actor = actor.expect("dbench has actors");
                starting(m, placement, nice, move |m| dbench::run(m.clone(), actor.on_task(m), params))
            }
            Self::Mix(mix) => {
                let walked = mix.walked(place, tasks);
                let (mix, actor) = (mix.clone(), actor.expect("mixes have actors").walking(names, walked));
                starting(m, placement, nice, move |m| mix::run(m.clone(), actor.on_task(m), mix, requests))
            }
        }
    }
}

/// A task that is about to start.
struct Starting {
    task: u32,
    /// Its place among those of its load, and how many these are.
    place: (usize, usize),
    /// Names that each directory has when the run begins.
    names: u32,
    placement: Placement,
    nice: Option<i32>,
    requests: Requests,
}

fn fio_jobs(spec: &RunSpec) -> Result<Jobs, String> {
    let jobs = Jobs::of(&spec.workload, spec.machine.costs.speed)?;
    let kind = spec.filesystem.kind;
    if kind == FilesystemKind::Tmpfs && jobs.iodepth > 1 {
        return Err("workload.params.iodepth: tmpfs has no requests".into());
    }
    let unwritten = match kind {
        FilesystemKind::Ext4 => true,
        FilesystemKind::Btrfs => !jobs.direct && jobs.written == 0.0,
        _ => false,
    };
    if jobs.file.unwritten && !unwritten {
        return Err(
            "workload.params.unwritten: needs ext4, or writes through the page cache on btrfs from the beginning"
                .into(),
        );
    }
    if spec.device.is_none()
        && (jobs.direct && kind == FilesystemKind::Btrfs || matches!(kind, FilesystemKind::Xfs | FilesystemKind::Ext4))
    {
        return Err("device: fio needs one on this filesystem".into());
    }
    Ok(jobs)
}

/// Spawns a task of the load, at its nice level.
fn starting<M: Machine, P: Future<Output = ()> + 'static>(
    m: &M,
    placement: Placement,
    nice: Option<i32>,
    program: impl FnOnce(M) -> P + 'static,
) -> TaskId {
    match nice {
        None => m.spawn(placement, SpawnKind::Foreground, program),
        Some(nice) => m.spawn(placement, SpawnKind::Foreground, move |m| at_nice(m, nice, program)),
    }
}
