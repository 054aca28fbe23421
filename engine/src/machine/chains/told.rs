//! Chains as results: from the waiter over its locks to the root.

use super::{Chains, Node, Reason, Word};
use crate::waist::time::Time;
use crate::waist::{ClassId, Side};

/// One lock of a chain, and what its holder is doing there; no site where nobody is known to have it.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Its class.
    pub class: ClassId,
    /// The side that is waited for.
    pub side: Side,
    /// What its holder is doing.
    pub site: Option<u16>,
}

/// What is at the end of a chain, and the function that sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Root {
    /// Why nobody goes on.
    pub reason: Reason,
    /// The function that sleeps, if it is known.
    pub function: Option<u16>,
}

impl Root {
    /// The reason's name in results.
    pub fn name(&self) -> &'static str {
        Reason::ALL[self.reason as usize].1
    }
}

/// A chain, from the waiter on, and the time in it.
#[derive(Clone, Debug)]
pub struct Chain {
    /// What the waiter is doing; nothing where it is about whoever has the first lock.
    pub waiter: Option<u16>,
    /// The locks.
    pub links: Vec<Link>,
    /// What is at the end.
    pub root: Root,
    /// The time of all who waited together; of a holder the time for which somebody waited for it.
    pub time: Time,
}

impl Chains {
    /// The chains of everybody who waited.
    pub fn waits(&self) -> impl Iterator<Item = Chain> + '_ {
        self.told(|node| matches!(node.word, Word::Site(_)) && node.locks > 0)
    }

    /// The chains without a lock: sleeps for something else.
    pub fn sleeps(&self) -> impl Iterator<Item = Chain> + '_ {
        self.told(|node| matches!(node.word, Word::Site(_)) && node.locks == 0)
    }

    /// The chains of whoever had a lock that somebody waited for.
    pub fn holds(&self) -> impl Iterator<Item = Chain> + '_ {
        self.told(|node| matches!(node.word, Word::Held(_)))
    }

    fn told(&self, wanted: impl Fn(&Node) -> bool + 'static) -> impl Iterator<Item = Chain> + '_ {
        let numbers = 0..self.nodes.len() as u32;
        numbers.filter_map(move |at| {
            let node = &self.nodes[at as usize];
            (node.time > 0 && wanted(node)).then(|| self.tell(at, node.time))
        })
    }

    /// The chain that ends with a node.
    fn tell(&self, mut at: u32, time: Time) -> Chain {
        let (mut waiter, mut links, mut function) = (None, Vec::<Link>::new(), None);
        loop {
            let node = &self.nodes[at as usize];
            match node.word {
                Word::Root(reason) => return Chain { waiter, links, root: Root { reason, function }, time },
                Word::Function(name) => function = Some(name),
                Word::Lock(class, side) => links.push(Link { class, side, site: None }),
                Word::Held(class) => links.push(Link { class, side: Side::Write, site: None }),
                Word::Site(site) => match links.last_mut() {
                    Some(link) => link.site = Some(site),
                    None => waiter = Some(site),
                },
            }
            at = node.nearer;
        }
    }
}
