//! A value for each number of some, which may be large and far apart: pages are there where one was asked for.

/// Numbers of a page.
const PAGE: usize = 512;

/// The values; the default where none was set.
#[derive(Clone, Debug)]
pub struct Paged<T>(Vec<Option<Box<[T; PAGE]>>>);

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy + Default> Paged<T> {
    /// That of a number.
    pub fn of(&mut self, number: u64) -> &mut T {
        let (page, place) = ((number / PAGE as u64) as usize, number as usize % PAGE);
        if self.0.len() <= page {
            self.0.resize_with(page + 1, || None);
        }
        &mut self.0[page].get_or_insert_with(|| Box::new([T::default(); PAGE]))[place]
    }

    /// How many pages there is room for.
    #[cfg(test)]
    pub fn pages(&self) -> usize {
        self.0.len()
    }
}
