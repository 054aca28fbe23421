//! The values of a rule.

use serde_json::Value;

/// What a rule can be: a switch, or one of several words.
pub trait Choice: Copy + 'static {
    /// All values, in the order in which kernels had them.
    const ALL: &'static [Self];

    /// The value as specs and scenarios write it.
    fn written(self) -> Value;
}

impl Choice for bool {
    const ALL: &'static [Self] = &[false, true];

    fn written(self) -> Value {
        self.into()
    }
}

/// Declares an enumeration whose values have words: `choice!(pub enum Wheel { Late = "late", Early = "early" })`.
macro_rules! choice {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$about:meta])* $value:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$about])* $value),+ }

        impl $crate::kernel::Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn written(self) -> serde_json::Value {
                match self { $(Self::$value => $word),+ }.into()
            }
        }
    };
}

pub(crate) use choice;
