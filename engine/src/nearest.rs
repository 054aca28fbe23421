//! The word that was probably meant.

/// The known word that takes the fewest changes of a letter, if that is at most two in five.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let closest = known.into_iter().map(|other| (distance(word, other), other)).min()?;
    (5 * closest.0 <= 2 * word.len().max(closest.1.len())).then_some(closest.1)
}

/// A sentence's end that suggests the nearest word, or nothing.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or(String::new(), |near| format!(" (did you mean '{near}'?)"))
}

/// Letters to insert, delete or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_only_if_it_is_near() {
        assert_eq!(nearest("readesr", ["readers", "think"]), Some("readers"));
        assert_eq!(nearest("hold", ["hold_ns", "think_ns"]), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(hint("thnik", ["think"]), " (did you mean 'think'?)");
    }
}
