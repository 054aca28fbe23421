//! Names of files, as the format string of a program makes them.

use crate::spec::WorkloadSpec;
use std::ops::Deref;

/// Bytes of the longest name.
pub const LONGEST: usize = 31;

/// A name; a plain value, so that an operation allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    length: u8,
    bytes: [u8; LONGEST],
}

impl Name {
    const EMPTY: Self = Self { length: 0, bytes: [0; LONGEST] };

    fn push(&mut self, text: &[u8]) {
        let end = usize::from(self.length) + text.len();
        self.bytes[usize::from(self.length)..end].copy_from_slice(text);
        self.length = end as u8;
    }

    fn push_number(&mut self, number: u32, width: usize) {
        let mut digits = [b'0'; 10];
        let (mut rest, mut first) = (number, digits.len());
        while rest > 0 || first > digits.len() - width.max(1) {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.push(&digits[first..]);
    }
}

impl Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self))
    }
}

/// How a program makes the names of its files: `r{task}.{serial}` as its `r%d.%ld`, `f{task:04}_{serial:08}` as its `f%04d_%08u`.
#[derive(Clone, Debug)]
pub struct NameFormat(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    /// The number of the task, with so many digits at least.
    Task(usize),
    /// The number of the name among those of its task.
    Serial(usize),
}

impl NameFormat {
    /// That of a workload. The error names the parameter.
    pub fn of(w: &WorkloadSpec) -> Result<Self, String> {
        Self::new(w.text("name_format")).map_err(|e| format!("workload.params.name_format: {e}"))
    }

    /// From its text; the error says what is wrong.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (field, behind) = after.split_once('}').ok_or_else(|| format!("'{text}' has a {{ without its }}"))?;
            pieces.extend([Piece::Text(before.into()), Piece::field(field)?]);
            rest = behind;
        }
        pieces.push(Piece::Text(rest.into()));
        let format = Self(pieces);
        match format.longest() {
            too_long if too_long > LONGEST => {
                Err(format!("'{text}' makes names of up to {too_long} bytes; {LONGEST} is the most"))
            }
            _ => Ok(format),
        }
    }

    /// A name of a task.
    pub fn name(&self, task: u32, serial: u32) -> Name {
        let mut name = Name::EMPTY;
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => name.push(text.as_bytes()),
                Piece::Task(width) => name.push_number(task, *width),
                Piece::Serial(width) => name.push_number(serial, *width),
            }
        }
        name
    }

    fn longest(&self) -> usize {
        let of = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Task(width) => *width.max(&5),
            Piece::Serial(width) => *width.max(&10),
        };
        self.0.iter().map(of).sum()
    }
}

impl Piece {
    fn field(field: &str) -> Result<Self, String> {
        let unknown =
            || format!("'{{{field}}}' is neither {{task}} nor {{serial}}, perhaps with a width, as {{serial:08}}");
        let (what, width) = field.split_once(':').unwrap_or((field, "0"));
        let width = width.parse().ok().filter(|width| *width <= 10).ok_or_else(unknown)?;
        match what {
            "task" => Ok(Self::Task(width)),
            "serial" => Ok(Self::Serial(width)),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_printf() {
        let name = |format: &str, task, serial| {
            String::from_utf8(NameFormat::new(format).unwrap().name(task, serial).to_vec()).unwrap()
        };
        assert_eq!(name("r{task}.{serial}", 0, 0), "r0.0");
        assert_eq!(name("r{task}.{serial}", 12, 345), "r12.345");
        assert_eq!(name("f{task:04}_{serial:08}", 7, 120), "f0007_00000120");
        assert_eq!(name("{serial:02}", 0, 1234), "1234");
        assert_eq!(name("willitscale", 3, 4), "willitscale");
    }

    #[test]
    fn what_is_no_format_is_refused() {
        let refused = |format: &str| NameFormat::new(format).unwrap_err();
        assert!(refused("f{number}").contains("neither {task} nor {serial}"));
        assert!(refused("f{serial:99}").contains("neither"));
        assert!(refused("f{serial").contains("without its }"));
        assert!(refused("a_name_that_is_too_long_{serial:08}").contains("31 is the most"));
    }
}
