//! The token that every action needs.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;

/// A secret text.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// Creates a token of 128 bits.
    ///
    /// The bits come from the operating system: from `/dev/urandom` where that exists, and otherwise from the
    /// random keys of std's hash maps. `fastrand` isn't meant for secrets, and a crate for 16 bytes isn't worth
    /// its build time.
    pub(super) fn random() -> Self {
        let mut bits = [0; 16];
        let read = std::fs::File::open("/dev/urandom").and_then(|mut it| it.read_exact(&mut bits));
        if read.is_err() {
            let key = RandomState::new();
            for (index, half) in bits.chunks_mut(8).enumerate() {
                let mut hasher = key.build_hasher();
                hasher.write_usize(index);
                half.copy_from_slice(&hasher.finish().to_le_bytes());
            }
        }
        Self(format!("{:032x}", u128::from_le_bytes(bits)))
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `given` is this token, in a time that depends on the length only.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        let own = self.0.as_bytes();
        if own.is_empty() || own.len() != given.len() {
            return false;
        }
        let differs = own.iter().zip(given).fold(0, |differs, (a, b)| differs | (a ^ b));
        std::hint::black_box(differs) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_right_and_an_empty_one_never() {
        let token = Token::new("secret".to_owned());
        assert!(token.is(b"secret"));
        for wrong in ["", "secre", "secrets", "Secret", "sekret", "secreT"] {
            assert!(!token.is(wrong.as_bytes()), "{wrong}");
        }
        assert!(!Token::new(String::new()).is(b""));
    }

    #[test]
    fn random_tokens_have_128_bits_and_differ() {
        let (a, b) = (Token::random(), Token::random());
        assert!(a.expose().len() == 32 && a.expose().bytes().all(|it| it.is_ascii_hexdigit()));
        assert_ne!(a.expose(), b.expose());
        assert!(a.is(a.expose().as_bytes()) && !a.is(b.expose().as_bytes()));
    }
}
