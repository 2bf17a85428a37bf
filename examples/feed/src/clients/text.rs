//! The texts of the built-in clients, as a function of client and line number.
//!
//! Clients and audit use the same function, so that the audit needs no copy of what was sent.

/// The size of a client's longest line.
const LONG: usize = 1 << 20;

/// Returns the text of line `n` of the client with this index.
pub(crate) fn text(index: usize, n: u64) -> Vec<u8> {
    match n % 25 {
        3 => Vec::new(),
        5 | 6 => b"the same again".to_vec(),
        8 => b"a carriage return stays\r".to_vec(),
        11 => vec![0xff, 0xfe, 0x00, b' ', 0xc3, 0x28],
        14 => b"  spaces  around  ".to_vec(),
        17 => "gr\u{fc}\u{df}e, \u{4f60}\u{597d}".as_bytes().to_vec(),
        0 if n == 500 && index.is_multiple_of(4) => long(index, LONG),
        // The longest of them has 995 bytes, however many lines there are.
        20 => long(index, (n % 1_000) as usize),
        _ => format!("line {n} of client {index}").into_bytes(),
    }
}

/// Returns bytes that differ between clients and contain no newline.
fn long(index: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| b'a' + ((i / 7 + index) % 26) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_client_are_varied_and_contain_no_newline() {
        let texts: Vec<Vec<u8>> = (1..=1_000).map(|n| text(0, n)).collect();

        assert!(texts.iter().any(Vec::is_empty));
        assert!(texts.iter().any(|text| text.ends_with(b"\r")));
        assert!(texts.iter().any(|text| str::from_utf8(text).is_err()));
        assert!(texts.iter().any(|text| text.len() == LONG));
        assert!(texts.iter().filter(|text| **text == b"the same again").count() > 1);
        assert!(texts.iter().all(|text| !text.contains(&b'\n')));
    }
}
