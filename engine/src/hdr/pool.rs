//! Text forms of many histograms are added up in one tally: each by itself would need room for all times up to an hour.

use super::{nothing, Tally, COOKIE, HOUR};
use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::{Decompress, FlushDecompress, Status};
use std::cell::RefCell;

/// What comes before the counts: cookie, their bytes, an offset, the digits, the bounds and a factor.
const HEADER: usize = 40;
/// Bytes up to which a histogram is read here.
const MOST: usize = 1 << 20;

thread_local! {
    static DECOMPRESSOR: RefCell<Decompress> = RefCell::new(Decompress::new(true));
}

/// All times of these texts, if they are all the engine's.
pub(super) fn tally(texts: &[&str]) -> Option<Tally> {
    let Some(first) = texts.iter().find(|text| !is_nothing(text)) else {
        let digits = (1..=5).find(|&digits| texts.first() == Some(&nothing(digits)))?;
        return texts.iter().all(|&text| text == nothing(digits)).then(|| Tally::new(digits));
    };
    let digits = plain(first)?[15];
    let mut tally = (1..=5).contains(&digits).then(|| Tally::new(digits))?;
    for &text in texts.iter().filter(|&&text| text != nothing(digits)) {
        add(&mut tally, &plain(text)?)?;
    }
    Some(tally)
}

fn is_nothing(text: &str) -> bool {
    (1..=5).any(|digits| text == nothing(digits))
}

/// The bytes of a text form, uncompressed.
fn plain(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    if !bytes.starts_with(&COOKIE) || bytes.len() < 8 {
        return None;
    }
    let mut plain = Vec::with_capacity(8 * bytes.len() + HEADER);
    DECOMPRESSOR.with_borrow_mut(|decompressor| inflate(decompressor, &bytes[8..], &mut plain))?;
    (plain.len() >= HEADER).then_some(plain)
}

fn inflate(decompressor: &mut Decompress, bytes: &[u8], plain: &mut Vec<u8>) -> Option<()> {
    decompressor.reset(true);
    loop {
        let rest = &bytes[decompressor.total_in() as usize..];
        match decompressor.decompress_vec(rest, plain, FlushDecompress::Finish).ok()? {
            Status::StreamEnd => return Some(()),
            Status::Ok | Status::BufError if plain.len() == plain.capacity() && plain.len() < MOST => {
                plain.reserve(plain.len());
            }
            Status::Ok | Status::BufError => return None,
        }
    }
}

/// Adds the counts of a histogram with the tally's digits, from a nanosecond to an hour.
fn add(tally: &mut Tally, plain: &[u8]) -> Option<()> {
    let word = |at: usize| u64::from_be_bytes(plain[at..at + 8].try_into().expect("eight bytes"));
    let counts = u32::from_be_bytes(plain[4..8].try_into().expect("four bytes")) as usize;
    let usual = (word(8), word(16), word(24), f64::from_bits(word(32)));
    if usual != (u64::from(tally.digits), 1, HOUR, 1.0) || plain.len() != HEADER + counts {
        return None;
    }
    let (mut bytes, mut place) = (&plain[HEADER..], 0_usize);
    while !bytes.is_empty() {
        let number = number(&mut bytes)?;
        let count = (number >> 1) as i64 ^ -((number & 1) as i64);
        if count < 0 {
            place = place.checked_add(usize::try_from(count.checked_neg()?).ok()?)?;
        } else {
            tally.add(place, count as u64)?;
            place += 1;
        }
    }
    Some(())
}

/// The number at the beginning of `bytes`, seven bits a byte and at most nine of them, which is taken off.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if at == 8 {
            return Some(number | u64::from(byte) << 56);
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}
