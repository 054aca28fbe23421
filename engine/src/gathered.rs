//! Maps and sets where speed does not matter.

/// What an iterator gives, entered one by one. `collect` would first sort it, and a sort is compiled for each map anew: some 2,000 lines of
/// LLVM's language.
pub fn gathered<C: Default + Extend<T>, T>(items: impl IntoIterator<Item = T>) -> C {
    let mut all = C::default();
    all.extend(items);
    all
}
