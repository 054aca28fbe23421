//! Calls whose lines were counted, in bodies: the lines that the same calls touch. A body was used last by the last of its calls.

use super::warmth::{share, Cache, Lines, Part, WHOLE};
use crate::spec::BodySpec;
use crate::waist::time::Time;

/// One call, and how much of what its lines cost it has paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetching {
    kind: u32,
    cost: Time,
    paid: Time,
    /// Its time so far, and that of the last call of its kind.
    own: Time,
    last: Time,
}

impl Fetching {
    /// A call of a kind begins, whose last call took so long.
    pub fn new(kind: usize, cost: Time, last: Time) -> Self {
        Self { kind: kind as u32, cost, paid: 0, own: 0, last }
    }

    /// What it pays for its next `own`: calls touch new lines evenly, up to their ends (counted, see docs/machine/warmth.md).
    pub fn pay(&mut self, own: Time) -> Time {
        self.own += own;
        if self.paid == self.cost {
            return 0;
        }
        let part = if self.own < self.last { (self.own << 16) / self.last } else { WHOLE };
        let due = share(self.cost, part);
        due - std::mem::replace(&mut self.paid, due)
    }
}

/// A kind of call: its site, the numbers of its bodies, and how long the last such call took.
#[derive(Clone, Debug)]
struct Kind {
    site: String,
    bodies: Vec<usize>,
    took: Time,
}

/// How many lines and pages of data, and the numbers of the kinds that touch them.
#[derive(Clone, Debug)]
struct Body {
    lines: u64,
    pages: u64,
    kinds: Vec<usize>,
}

impl Body {
    fn gone(&self, from: &Cache) -> Part {
        from.gone_of_any(&self.kinds)
    }
}

/// All kinds and bodies.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    kinds: Vec<Kind>,
    bodies: Vec<Body>,
    /// By the number of a site that was met: its kind, or a larger number if it was not counted.
    met: Vec<usize>,
}

impl Counted {
    /// Those of a machine.
    pub fn new(spec: &[BodySpec]) -> Self {
        let mut of = Self::default();
        for (number, body) in spec.iter().enumerate() {
            let kinds: Vec<_> = body.calls.iter().map(|site| of.kind_or_new(site)).collect();
            kinds.iter().for_each(|&kind| of.kinds[kind].bodies.push(number));
            of.bodies.push(Body { lines: body.lines.round() as u64, pages: body.pages.round() as u64, kinds });
        }
        of
    }

    fn kind_of(&self, site: &str) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.site == site)
    }

    fn kind_or_new(&mut self, site: &str) -> usize {
        self.kind_of(site).unwrap_or_else(|| {
            self.kinds.push(Kind { site: site.to_owned(), bodies: Vec::new(), took: 0 });
            self.kinds.len() - 1
        })
    }

    /// The kind of calls at a site of all that were met.
    pub fn kind(&mut self, site: usize, sites: &[&str]) -> usize {
        while self.met.len() <= site {
            let new = self.met.len();
            self.met.push(self.kind_of(sites[new]).unwrap_or(self.kinds.len() + new));
        }
        self.met[site]
    }

    /// How long the last call of a kind took; none if its lines were not counted.
    pub fn took(&self, kind: usize) -> Option<Time> {
        self.kinds.get(kind).map(|kind| kind.took)
    }

    /// A call is over.
    pub fn over(&mut self, call: Fetching) {
        self.kinds[call.kind as usize].took = call.own;
    }

    /// How many lines of a call its caches do not have. The page tables' lines are where the body's are.
    pub fn missing(&self, kind: usize, core: &Cache, llc: &Cache, front: &Cache, tlb: &Cache) -> Lines {
        self.kinds[kind].bodies.iter().map(|&body| &self.bodies[body]).fold(Lines::default(), |so_far, body| {
            let (gone, unknown) = (body.gone(core), body.gone(front));
            let beyond = gone.min(body.gone(llc));
            let walks = share(body.pages, body.gone(tlb));
            Lines {
                core: so_far.core + share(body.lines, gone),
                llc: so_far.llc + share(body.lines, beyond),
                front: so_far.front + share(body.lines, unknown),
                stalled: so_far.stalled + share(body.lines, gone.min(unknown)),
                walks: so_far.walks + walks,
                far_walks: so_far.far_walks + share(walks, gone),
                farther_walks: so_far.farther_walks + share(walks, beyond),
            }
        })
    }
}
