//! State that most have none of, and that takes up a pointer until somebody has.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

/// A value that is empty until it is first changed, and has its room elsewhere from then on.
#[derive(Debug)]
pub(in crate::machine) struct Seldom<T>(Option<Box<T>>);

/// What can be empty.
pub(in crate::machine) trait Empty: Default + 'static {
    /// That.
    const EMPTY: &'static Self;
}

impl<T: Default + 'static> Empty for VecDeque<T> {
    const EMPTY: &'static Self = &Self::new();
}

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Empty> Deref for Seldom<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Empty> DerefMut for Seldom<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}
