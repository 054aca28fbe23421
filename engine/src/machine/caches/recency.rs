//! How much was used in a cache since a block was last used there, each thing counted once, where it was used last.
//!
//! What was used lies in buckets, from the oldest to the newest; a use moves a block to the newest (as T. Saemundsson et al. keep
//! it for caches of objects, "Dynamic performance profiling of cloud caches", SoCC 2014). So a block needs the number of its
//! bucket, and a use a sum over newer buckets. Counting all that comes into the cache is not enough: from a structure one and a
//! half times as large as the cache, nothing would come in any more once a cache of it is there.

/// Buckets that are kept apart.
const BUCKETS: usize = 128;
/// How many of them fill a cache.
const FILL: u64 = 32;

/// The number of a bucket; later ones are larger.
pub type Bucket = u32;

/// What was used in one cache, by when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recency {
    /// Bytes of the cache, and those that fill a bucket.
    size: u64,
    full: u64,
    bytes: [u64; BUCKETS],
    oldest: Bucket,
    newest: Bucket,
}

impl Recency {
    /// Of a cache of so many bytes.
    pub fn new(size: u64) -> Self {
        Self { size, full: (size / FILL).max(1), bytes: [0; BUCKETS], oldest: 0, newest: 0 }
    }

    /// So many bytes are used now that were not used before. Returns the bucket that they are in.
    pub fn add(&mut self, bytes: u64) -> Bucket {
        let now = self.bytes[slot(self.newest)];
        if now > 0 && now + bytes > self.full {
            self.open();
        }
        self.bytes[slot(self.newest)] += bytes;
        self.newest
    }

    /// Bytes of a bucket are used anew, or are no more.
    pub fn take(&mut self, bucket: Bucket, bytes: u64) {
        self.bytes[slot(bucket.max(self.oldest))] -= bytes;
    }

    /// Whether it is the newest bucket and has room for what is in it: bytes of it that are used anew stay there.
    #[inline]
    pub fn is_open(&self, bucket: Bucket) -> bool {
        bucket == self.newest && self.bytes[slot(bucket)] <= self.full
    }

    /// Whether more bytes than the cache holds were used last after what is in a bucket; of those in the bucket itself, half.
    pub fn is_gone(&self, bucket: Bucket) -> bool {
        let bucket = bucket.max(self.oldest);
        let mut since = self.bytes[slot(bucket)] / 2;
        let mut newer = self.newest;
        while since <= self.size && newer > bucket {
            since += self.bytes[slot(newer)];
            newer -= 1;
        }
        since > self.size
    }

    /// The size of the cache.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// All bytes that were ever used.
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// A new bucket; where there is no room for one the two oldest become one.
    fn open(&mut self) {
        self.newest += 1;
        if (self.newest - self.oldest) as usize == BUCKETS {
            self.bytes[slot(self.oldest + 1)] += self.bytes[slot(self.oldest)];
            self.oldest += 1;
        }
        self.bytes[slot(self.newest)] = 0;
    }
}

fn slot(bucket: Bucket) -> usize {
    bucket as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const BLOCK: u64 = 1024;

    /// The share of random visits to so many blocks that find their block within the last `fit` blocks' bytes.
    fn hits(blocks: u64, fit: u64) -> f64 {
        let mut recency = Recency::new(fit * BLOCK);
        let mut last: Vec<_> = (0..blocks).map(|_| recency.add(BLOCK)).collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let visits = 40 * blocks;
        let found = (0..visits).filter(|_| {
            let block = (random.next_u64() % blocks) as usize;
            let hit = !recency.is_gone(last[block]);
            recency.take(last[block], BLOCK);
            last[block] = recency.add(BLOCK);
            hit
        });
        found.count() as f64 / visits as f64
    }

    #[test]
    fn of_random_visits_as_many_hit_as_there_are_blocks_in_the_cache() {
        for (blocks, fit) in [(2000, 1000), (2000, 1500), (5000, 500), (3000, 2850)] {
            let (hit, expected) = (hits(blocks, fit), fit as f64 / blocks as f64);
            assert!((hit - expected).abs() < 0.03, "{fit} of {blocks}: {hit} instead of {expected}");
        }
    }

    #[test]
    fn what_is_used_anew_in_an_open_bucket_changes_nothing() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut open = 0;
        for size in [0, 100, 32 * BLOCK, 1000 * BLOCK] {
            let mut recency = Recency::new(size);
            for _ in 0..10_000 {
                let bytes = random.next_u64() % (2 * BLOCK);
                let bucket = recency.add(bytes);
                if !recency.is_open(bucket) {
                    continue;
                }
                open += 1;
                let before = recency.clone();
                assert!(!recency.is_gone(bucket));
                recency.take(bucket, bytes);
                assert_eq!(recency.add(bytes), bucket);
                assert_eq!(recency, before, "{bytes} bytes, a cache of {size}");
            }
        }
        assert!(open > 10_000, "{open}");
    }

    #[test]
    fn what_fits_always_hits() {
        assert_eq!(hits(1000, 1000), 1.0);
    }

    #[test]
    fn a_walk_goes_round_in_vain_if_it_is_longer_than_the_cache() {
        let mut recency = Recency::new(100 * BLOCK);
        let mut last: Vec<_> = (0..120).map(|_| recency.add(BLOCK)).collect();
        for block in (0..120).cycle().take(1200) {
            assert!(recency.is_gone(last[block]));
            recency.take(last[block], BLOCK);
            last[block] = recency.add(BLOCK);
        }
        assert_eq!(recency.total(), 120 * BLOCK);
    }
}
