//! Sizes of the kernel's hash tables (`alloc_large_system_hash`).

/// Beyond this much memory tables grow more slowly (since 4.13).
const ADAPT: u64 = 64 << 30;

/// Buckets of a table on a machine with so much memory: one for `2^scale` bytes, rounded up to a power of two; beyond 64 GiB half as
/// many for each factor of four.
pub fn hash_buckets(memory: u64, scale: u32) -> u64 {
    let doublings = (0..).take_while(|n| ADAPT << (2 * n) < memory).count();
    (memory >> scale >> doublings).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::hash_buckets;

    #[test]
    fn a_hash_table_has_a_bucket_for_16_kib_and_grows_more_slowly_beyond_64_gib() {
        let sizes = [16 << 30, 24 << 30, 64 << 30, 65 << 30, 256 << 30, 257 << 30];
        let buckets = sizes.map(|memory| hash_buckets(memory, 14));
        assert_eq!(buckets, [1 << 20, 2 << 20, 4 << 20, 4 << 20, 8 << 20, 8 << 20]);
    }
}
