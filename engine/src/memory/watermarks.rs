//! How little free memory makes who reclaim (`init_per_zone_wmark_min`, `__setup_per_zone_wmarks` of `mm/page_alloc.c`, 5.9 to 6.12).

use crate::block::BLOCK;

/// Least and most memory that is kept free, in KiB.
const LEAST_KIB: f64 = 128.0;
const MOST_KIB: f64 = 262_144.0;

/// Counts of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// What files can have in all.
    pub pages: u64,
    /// Below this who allocates reclaims himself.
    pub least: u64,
    /// Below this `kswapd` is woken.
    pub low: u64,
    /// Up to this it works.
    pub high: u64,
}

impl Watermarks {
    /// Of a machine with so many bytes, of which files can have a share; `scale` is `vm.watermark_scale_factor`, as a share.
    pub fn new(bytes: u64, share: f64, scale: f64) -> Self {
        let (all, page) = (bytes as f64, f64::from(BLOCK));
        let least = (all / 1024.0 * 16.0).sqrt().clamp(LEAST_KIB, MOST_KIB) * 1024.0 / page;
        let gap = (least / 4.0).max(all / page * scale);
        Self {
            pages: (all * share / page) as u64,
            least: least as u64,
            low: (least + gap) as u64,
            high: (least + 2.0 * gap) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Watermarks;

    #[test]
    fn sixteen_gib_keep_sixteen_mib_and_kswapd_as_much_again() {
        let marks = Watermarks::new(16 << 30, 0.9, 0.001);
        assert_eq!((marks.least, marks.low - marks.least, marks.high - marks.low), (4096, 4194, 4194));
        assert_eq!(marks.pages, 3_774_873);
        assert_eq!(Watermarks::new(64 << 20, 0.9, 0.001).least, 256, "1 MiB");
    }
}
