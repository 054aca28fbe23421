//! The block device.

use super::yes;
use serde::Deserialize;

/// A block device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Who serves its requests.
    pub served_by: ServedBy,
    /// How many requests it serves at once.
    pub parallelism: u32,
    /// CPU time of the submitter, from building the request to handing it over.
    pub submit_ns: f64,
    /// The same of what becomes part of a request in the submitter's plug, if it has one.
    #[serde(default)]
    pub merge_ns: f64,
    /// CPU time of a request's end besides the wake-up in it: the interrupt of hardware, the softirq after a worker.
    pub interrupt_ns: f64,
    /// CPU time of `kblockd` to issue one request of a flush sequence.
    #[serde(default)]
    pub dispatch_ns: f64,
    /// It can write data past its cache (`REQ_FUA`); without, a flush follows them.
    #[serde(default = "yes")]
    pub fua: bool,
    /// What is written past a cache that is not protected takes a flush longer.
    #[serde(default = "yes")]
    pub fua_waits: bool,
    /// It has a cache that loses what is not flushed (`QUEUE_FLAG_WC`, `BLK_FEAT_WRITE_CACHE`). Without, flushes are not sent.
    #[serde(default = "yes")]
    pub write_cache: bool,
    /// It does a flush alone: after all requests that it has, and before any other (a command of SATA that is not queued).
    #[serde(default)]
    pub flush_alone: bool,
    /// It has a queue for each CPU, not one for all.
    #[serde(default)]
    pub queue_per_cpu: bool,
    /// Reads.
    pub read: ServiceSpec,
    /// Writes.
    pub write: ServiceSpec,
    /// Flushes of its cache.
    pub flush: ServiceSpec,
    /// How many requests it has at most; others wait before it. Without, there is no limit.
    #[serde(default)]
    pub depth: Option<u32>,
    /// The pipe that all requests share, if there is a limit.
    #[serde(default)]
    pub bandwidth: Option<BandwidthSpec>,
    /// How many writes its flash takes, however small, if there is a limit.
    #[serde(default)]
    pub small_writes: Option<SmallWritesSpec>,
    /// Its arm and platters if it is a disk; the times of requests are then besides these.
    #[serde(default)]
    pub disk: Option<DiskSpec>,
    /// It says that it rotates (`queue/rotational`), whether it does or not.
    #[serde(default)]
    pub rotational: bool,
    /// Its pages come with the first write to each, and take this besides.
    #[serde(default)]
    pub first_write: Option<FirstWriteSpec>,
    /// It is an md array of so many such devices, as RAID 0.
    #[serde(default)]
    pub raid0: Option<u32>,
}

impl DeviceSpec {
    /// Something that takes no time.
    pub fn instant() -> Self {
        let none = ServiceSpec { time_ns: 0.0, cv: 0.0, per_kib_ns: 0.0 };
        Self {
            served_by: ServedBy::Submitter,
            parallelism: 1,
            submit_ns: 0.0,
            merge_ns: 0.0,
            interrupt_ns: 0.0,
            dispatch_ns: 0.0,
            fua: true,
            fua_waits: true,
            write_cache: true,
            flush_alone: false,
            queue_per_cpu: false,
            read: none,
            write: none,
            flush: none,
            depth: None,
            bandwidth: None,
            small_writes: None,
            disk: None,
            rotational: false,
            first_write: None,
            raid0: None,
        }
    }
}

/// Bytes a second that a device can move, by direction; each uses its part of one pipe.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandwidthSpec {
    /// Of reads.
    pub read: f64,
    /// Of writes.
    pub write: f64,
}

/// Writes that flash can take: for ever, and at once after a rest.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmallWritesSpec {
    /// So many a second for ever.
    pub rate: f64,
    /// So many at once.
    pub burst: f64,
}

/// The arm and the platters of a disk.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Time of one turn.
    pub revolution_ns: f64,
    /// A seek to the next track.
    pub seek_track_ns: f64,
    /// A seek over the whole disk.
    pub seek_full_ns: f64,
    /// Bytes on the disk.
    pub capacity_bytes: u64,
    /// Bytes of its cache, if that takes writes.
    #[serde(default)]
    pub cache_bytes: u64,
}

/// The first write of a page of a RAM disk.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstWriteSpec {
    /// CPU time to allocate and clear it.
    pub allocate_ns: f64,
    /// To enter it into the disk's tree, under the disk's lock.
    pub insert_ns: f64,
}

/// Who does the work of a request.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ServedBy {
    /// The task that submits it.
    Submitter,
    /// A kernel thread.
    Worker,
    /// The device itself.
    Hardware,
}

/// How long a kind of request takes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// Mean of 4 KiB.
    pub time_ns: f64,
    /// Its standard deviation relative to the mean (log-normal); 0 is always the mean.
    pub cv: f64,
    /// Each further KiB.
    pub per_kib_ns: f64,
}
