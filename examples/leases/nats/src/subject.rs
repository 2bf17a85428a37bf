//! The subjects of a lease and of its memo.

use std::fmt::Write;

use verger::lease::LeaseError;

/// The longest subject. Servers accept more, but limit the line that contains it.
const LONGEST: usize = 255;

/// Returns the subject of a lease, which is different for each name: letters, digits, `-` and `_` as they are, and each
/// other byte as `=` and two digits.
///
/// # Errors
///
/// If the name is empty or too long.
pub(crate) fn subject(stream: &str, name: &str) -> Result<String, LeaseError> {
    let mut subject = format!("{stream}.");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => subject.push(char::from(byte)),
            _ => write!(subject, "={byte:02x}").expect("a string accepts everything"),
        }
    }
    if name.is_empty() || subject.len() > LONGEST {
        let problem = format!("the lease `{name}` needs a subject of {} bytes", subject.len());
        let hint = format!("choose a name that isn't empty, and for which {LONGEST} are enough");
        return Err(LeaseError::new(problem).with_hint(hint));
    }
    Ok(subject)
}

/// Returns the subject of the memo of a lease. No lease has the same one: it has a `~` after the dot.
///
/// # Errors
///
/// As [`subject`].
pub(crate) fn memo_subject(stream: &str, name: &str) -> Result<String, LeaseError> {
    let lease = subject(stream, name)?;
    let name = lease.strip_prefix(stream).and_then(|it| it.strip_prefix('.')).unwrap_or_default();
    Ok(format!("{stream}.~{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_token_of_a_subject() {
        let subject = |name| subject("leases", name).unwrap();
        assert_eq!(subject("billing-2_B"), "leases.billing-2_B");
        assert_eq!(subject("app.billing"), "leases.app=2ebilling");
        assert_eq!(subject("a *>=ä"), "leases.a=20=2a=3e=3d=c3=a4");
    }

    #[test]
    fn the_memo_of_a_lease_has_a_subject_that_no_lease_has() {
        assert_eq!(memo_subject("leases", "app.billing").unwrap(), "leases.~app=2ebilling");
        assert_eq!(subject("leases", "~app").unwrap(), "leases.=7eapp");
        assert!(memo_subject("leases", "").is_err());
    }

    #[test]
    fn a_name_that_is_empty_or_too_long_is_refused() {
        assert!(subject("leases", "").is_err());
        assert!(subject("leases", &"a".repeat(248)).is_ok());
        let error = subject("leases", &"a".repeat(249)).unwrap_err().to_string();
        assert!(error.contains("needs a subject of 256 bytes: choose a name"), "{error}");
    }
}
