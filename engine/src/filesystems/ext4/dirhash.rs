//! The hash of a name in a directory (`ext4fs_dirhash`, fs/ext4/hash.c 6.12): half of MD4, begun with the filesystem's seed.

const BEGIN: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
const ROUND_2: u32 = 0o13_240_474_631;
const ROUND_3: u32 = 0o15_666_365_641;
/// Bytes that one transformation takes in.
const CHUNK: usize = 32;
/// What no name has for its hash (`EXT4_HTREE_EOF_32BIT`, doubled).
const EOF: u32 = 0xffff_fffe;

/// `s_hash_seed`; zeros are no seed.
pub(super) type Seed = [u32; 4];

/// The hash of a name by `half_md4`, which is even.
pub(super) fn half_md4(seed: Seed, name: &[u8]) -> u32 {
    let begin = if seed == [0; 4] { BEGIN } else { seed };
    let mut left = name;
    let mut state = begin;
    while !left.is_empty() {
        state = transform(state, words(left));
        left = &left[left.len().min(CHUNK)..];
    }
    match state[1] & !1 {
        EOF => EOF - 2,
        hash => hash,
    }
}

/// `str2hashbuf_signed`: the next bytes as words, filled up with the length of what is left.
fn words(left: &[u8]) -> [u32; 8] {
    let length = left.len() as u32;
    let pad = (length | length << 8).wrapping_mul(0x1_0001);
    let mut words = [pad; 8];
    for (word, bytes) in words.iter_mut().zip(left.chunks(4)) {
        *word = bytes.iter().fold(pad, |word, &byte| (word << 8).wrapping_add(i32::from(byte as i8) as u32));
    }
    words
}

/// `half_md4_transform`: three rounds of eight steps instead of sixteen.
fn transform(state: [u32; 4], x: [u32; 8]) -> [u32; 4] {
    let first = round(state, |x, y, z| z ^ (x & (y ^ z)), x, [3, 7, 11, 19]);
    let [x0, x1, x2, x3, x4, x5, x6, x7] = x;
    let words = [x1, x3, x5, x7, x0, x2, x4, x6].map(|word| word.wrapping_add(ROUND_2));
    let second = round(first, |x, y, z| (x & y).wrapping_add((x ^ y) & z), words, [3, 5, 9, 13]);
    let words = [x3, x7, x2, x6, x1, x5, x0, x4].map(|word| word.wrapping_add(ROUND_3));
    let third = round(second, |x, y, z| x ^ y ^ z, words, [3, 9, 11, 15]);
    std::array::from_fn(|at| state[at].wrapping_add(third[at]))
}

#[inline(always)]
fn round(state: [u32; 4], mix: impl Fn(u32, u32, u32) -> u32, words: [u32; 8], shifts: [u32; 4]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = state;
    for words in words.chunks_exact(4) {
        let step =
            |sum: u32, mixed: u32, at: usize| sum.wrapping_add(mixed).wrapping_add(words[at]).rotate_left(shifts[at]);
        a = step(a, mix(b, c, d), 0);
        d = step(d, mix(a, b, c), 1);
        c = step(c, mix(d, a, b), 2);
        b = step(b, mix(c, d, a), 3);
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// 00000000-0000-4000-8000-000000000002 and 12345678-9abc-def0-1234-56789abcdef0, as the superblock has them.
    const SEEDS: [(Seed, &str); 3] = [
        ([0; 4], "00000000-0000-0000-0000-000000000000"),
        ([0, 0x0040_0000, 0x0000_0080, 0x0200_0000], "00000000-0000-4000-8000-000000000002"),
        ([0x7856_3412, 0xf0de_bc9a, 0x7856_3412, 0xf0de_bc9a], "12345678-9abc-def0-1234-56789abcdef0"),
    ];

    /// By `debugfs -R "dx_hash -h half_md4 -s SEED NAME"` of e2fsprogs 1.47.0.
    #[test]
    fn names_hash_as_e2fsprogs_has_them() {
        let known: [(&str, [u32; 3]); 6] = [
            ("a", [0xd5fa_7d7a, 0xb7b2_9c00, 0xbd1a_2d4e]),
            ("work", [0xa3ef_2a88, 0xe65d_7164, 0xcae4_7f20]),
            ("lost+found", [0x591d_e422, 0x19f9_6188, 0x1aca_1f2a]),
            ("exactly-thirty-two-characters-xx", [0xdc10_aa0c, 0x4ecb_4976, 0xbf74_8b9e]),
            ("a-file-name-of-just-32-characters", [0xed3c_d696, 0x9939_de6c, 0x8a58_439a]),
            ("a_rather_long_file_name_with_more_than_32_characters.txt", [0x3396_24b6, 0x8b64_4b62, 0xfebe_ba7e]),
        ];
        for (name, hashes) in known {
            assert_eq!(SEEDS.map(|(seed, _)| half_md4(seed, name.as_bytes())), hashes, "{name}");
        }
    }

    /// Where `debugfs` is installed.
    #[test]
    fn names_hash_as_debugfs_says() {
        for length in [1, 3, 4, 31, 33, 63, 64, 65, 200] {
            let name: String =
                ('!'..='~').filter(|c| !"\"'\\".contains(*c)).cycle().skip(7 * length).take(length).collect();
            for (seed, uuid) in &SEEDS[1..] {
                let request = format!("dx_hash -h half_md4 -s {uuid} \"{name}\"");
                let Ok(said) = Command::new("debugfs").args(["-R", &request]).output() else { return };
                let hash = format!("is {:#x} ", half_md4(*seed, name.as_bytes()));
                let said = String::from_utf8_lossy(&said.stdout).into_owned();
                assert!(said.contains(&hash), "{request}: {said} {hash}");
            }
        }
    }
}
