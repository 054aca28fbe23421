//! Folios: pages of a file that the page cache has as one. A filesystem with large folios gets one for as many pages of a write as are
//! aligned (`__filemap_get_folio` with `fgf_set_order`), and finds, marks and lists them once. Without, each page is a folio.

use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::fs_type::FsType;
use crate::filesystems::BLOCK;
use crate::waist::Time;
use std::iter::successors;

cost_table!(Pages { read: ["call.read_page"], overwrite: ["call.overwrite_page"], append: ["call.append_page"] });

cost_table!(SmallFolios {
    read: ["call.read_folio"],
    overwrite: ["call.overwrite_folio"],
    append: ["call.append_folio"],
});

/// The largest folio, by the binary logarithm of its pages: a huge page (`MAX_PAGECACHE_ORDER`, x86).
const MAX_ORDER: u32 = 9;

/// What pages of a file take, besides what a call takes once.
pub struct Folios {
    large: bool,
    /// The first page of a call, and one that is in the folio of the page before.
    page: Pages,
    /// One more that is a folio of its own.
    folio: SmallFolios,
}

impl Folios {
    /// Of a type of filesystem, by the rules of the kernel.
    pub fn new(fs: &FsType, costs: &Costs<'_>) -> Result<Self, String> {
        let page = Pages::new(costs)?;
        Ok(match fs.large_folios {
            Some(large) => Self { large: large(&costs.rules()), page, folio: SmallFolios::new(costs)? },
            None => {
                let folio = SmallFolios { read: page.read, overwrite: page.overwrite, append: page.append };
                Self { large: false, page, folio }
            }
        })
    }

    /// Reading so many pages that are cached, in so many folios.
    pub fn read(&self, pages: u64, folios: u64) -> Time {
        self.page.read * (pages - folios + 1) + self.folio.read * (folios - 1)
    }

    /// Writing over so many.
    pub fn overwrite(&self, pages: u64, folios: u64) -> Time {
        self.page.overwrite * (pages - folios + 1) + self.folio.overwrite * (folios - 1)
    }

    /// The first pages of the folios that a write gets for so many new pages of a file that had `before`.
    pub fn firsts(&self, before: u64, pages: u64) -> impl Iterator<Item = u64> {
        let (most, end) = (if self.large { MAX_ORDER } else { 0 }, before + pages);
        let next = move |&at: &u64| {
            let next = at + (1 << at.trailing_zeros().min((end - at).ilog2()).min(most));
            (next < end).then_some(next)
        };
        successors((pages > 0).then_some(before), next)
    }

    /// How many these are.
    pub fn of(&self, before: u64, pages: u64) -> u64 {
        if self.large {
            self.firsts(before, pages).count() as u64
        } else {
            pages
        }
    }

    /// Pages in each folio of a file that was made by writes of so many bytes, one behind the other.
    pub fn of_writes(&self, bytes: u32) -> u64 {
        let pages = (u64::from(bytes) / u64::from(BLOCK)).max(1);
        if self.large {
            1 << pages.trailing_zeros().min(MAX_ORDER)
        } else {
            1
        }
    }

    /// What new pages take in so many folios, but for the first folio with its first page; `listing` a folio is taken apart.
    pub fn append(&self, pages: u64, folios: u64, listing: Time) -> Time {
        self.folio.append.saturating_sub(listing) * (folios - 1) + self.page.append * (pages - folios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folios(large: bool) -> Folios {
        let page = Pages { read: 1, overwrite: 1, append: 1 };
        Folios { large, page, folio: SmallFolios { read: 100, overwrite: 100, append: 100 } }
    }

    #[test]
    fn a_large_folio_begins_where_it_is_aligned() {
        let of = |before, pages| folios(true).of(before, pages);
        assert_eq!([of(0, 1), of(0, 16), of(16, 16), of(1, 1)], [1; 4]);
        assert_eq!(of(1, 7), 3, "1, 2 and 4 pages");
        assert_eq!(of(4, 7), 3, "4, 2 and 1 pages");
        assert_eq!(of(0, 1024), 2, "none is larger than a huge page");
        assert_eq!(folios(false).of(0, 16), 16);
        assert_eq!(folios(true).firsts(1, 7).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(folios(false).firsts(1, 3).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!((folios(true).firsts(1, 0).count(), folios(false).firsts(1, 0).count()), (0, 0));
    }

    #[test]
    fn folios_of_a_file_that_was_made_by_writes_are_as_large_as_their_places_allow() {
        assert_eq!(
            [1 << 10, 4 << 10, 256 << 10, 12 << 10, 8 << 20].map(|bytes| folios(true).of_writes(bytes)),
            [1, 1, 64, 1, 512]
        );
        assert_eq!(folios(false).of_writes(256 << 10), 1);
    }

    #[test]
    fn a_new_page_of_a_folio_that_is_there_takes_less_than_a_folio() {
        assert_eq!(folios(true).append(16, 1, 10), 15);
        assert_eq!(folios(false).append(16, 16, 10), 15 * 90);
        assert_eq!((folios(true).read(16, 1), folios(false).overwrite(16, 16)), (16, 1501));
        assert_eq!(folios(true).overwrite(16, 4), 13 + 300, "files that were written page by page have small ones");
    }

    #[test]
    fn one_page_takes_the_same_in_a_folio_of_any_size() {
        assert_eq!(
            (folios(true).read(1, 1), folios(true).overwrite(1, 1)),
            (folios(false).read(1, 1), folios(false).overwrite(1, 1))
        );
    }
}
