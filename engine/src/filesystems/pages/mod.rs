//! Pages of file data: folios, what is dirty, and how it gets to the device (`mm/filemap.c`, `mm/page-writeback.c`).

pub(in crate::filesystems) mod data_pages;
pub mod dirty;
pub(in crate::filesystems) mod folio_words;
pub(in crate::filesystems) mod folios;
pub(in crate::filesystems) mod mapping;
pub(in crate::filesystems) mod readahead;
