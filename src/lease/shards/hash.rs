//! Hashes that are the same in each process, on each machine and in each version.
//!
//! Members of different versions have to agree about them, so none of them may ever change.

/// Mixes the bits of a number: the finalizer of SplitMix64.
pub(super) const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns the hash of these bytes: FNV-1a with 64 bits, mixed.
pub(super) fn bytes(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(fnv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_never_change() {
        // SplitMix64 with the seed 0 begins with this number.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(1), 0x910a_2dec_8902_5cc1);
        assert_eq!(bytes(b""), mix(0xcbf2_9ce4_8422_2325));
        // A test vector of FNV-1a.
        assert_eq!(bytes(b"foobar"), mix(0x8594_4171_f739_67e8));
    }
}
