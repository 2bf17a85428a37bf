//! The file names of a lease and of its memo.

use std::fmt::Write;

use super::super::engine::LeaseError;

const SUFFIX: &str = ".lease";
/// Not longer than the one of the lease.
const MEMO: &str = ".memo";
/// A memo that is being written.
const NEW_MEMO: &str = ".memo~";
/// The longest file name that common file systems accept, in bytes.
const LONGEST: usize = 255;

/// The names of the files that belong to a lease.
#[derive(Debug)]
pub(super) struct FileNames {
    pub(super) lease: String,
    pub(super) memo: String,
    pub(super) new_memo: String,
}

/// Returns the file names of a lease, as [`file_name`] does for each of them.
///
/// # Errors
///
/// If the name is too long.
pub(super) fn file_names(name: &str) -> Result<FileNames, LeaseError> {
    let lease = file_name(name)?;
    let begin = lease.strip_suffix(SUFFIX).unwrap_or_default();
    let (memo, new_memo) = (format!("{begin}{MEMO}"), format!("{begin}{NEW_MEMO}"));
    Ok(FileNames { lease, memo, new_memo })
}

/// Returns the file name of a lease, which is different for each name, also where upper and lower case are the same.
///
/// It has no `/`, and doesn't begin with a dot unless the name is empty.
///
/// # Errors
///
/// If the name is too long.
fn file_name(name: &str) -> Result<String, LeaseError> {
    let mut file = String::with_capacity(name.len() + SUFFIX.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => file.push(char::from(byte)),
            b'.' if at > 0 => file.push('.'),
            _ => write!(file, "%{byte:02x}").expect("a string accepts everything"),
        }
    }
    file.push_str(SUFFIX);
    if file.len() <= LONGEST {
        return Ok(file);
    }
    let (long, start) = (file.len(), name.chars().take(32).collect::<String>());
    let problem = format!("the lease `{start}…` needs a file name of {long} bytes");
    Err(LeaseError::new(problem).with_hint(format!("choose a name for which {LONGEST} are enough")))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_name_is_its_file_name() {
        assert_eq!(file_name("billing").unwrap(), "billing.lease");
        assert_eq!(file_name("app-2_b.old").unwrap(), "app-2_b.old.lease");
    }

    #[test]
    fn no_name_leaves_the_directory() {
        assert_eq!(file_name("app/billing").unwrap(), "app%2fbilling.lease");
        assert_eq!(file_name("../../etc/passwd").unwrap(), "%2e.%2f..%2fetc%2fpasswd.lease");
        assert_eq!(file_name("/etc/passwd").unwrap(), "%2fetc%2fpasswd.lease");
        assert_eq!(file_name("a\0b\n").unwrap(), "a%00b%0a.lease");
        assert_eq!(file_name("..").unwrap(), "%2e..lease");
        assert_eq!(file_name("").unwrap(), ".lease");
    }

    #[test]
    fn different_names_are_different_files() {
        let names = ["", ".", "..", "a", "A", "%41", "%61", "a.lease", "a/b", "a%2fb", "ä", "a "];
        let files: HashSet<_> = names.iter().map(|it| file_name(it).unwrap()).collect();
        assert_eq!(files.len(), names.len());
        assert!(files.iter().all(|it| !it.bytes().any(|it| it.is_ascii_uppercase())));
    }

    #[test]
    fn the_files_of_all_leases_and_memos_have_different_names() {
        let names =
            ["a", "a.memo", "a.lease", "a.memo~", "a.memo.lease", "a.lease.memo", ".memo", ""];
        let all = names.map(|it| file_names(it).unwrap());
        let all = all.iter().flat_map(|it| [&it.lease, &it.memo, &it.new_memo]);
        let all: HashSet<_> = all.collect();
        assert_eq!(all.len(), 3 * names.len());
        let longest = all.iter().map(|it| it.len()).max();
        assert_eq!(longest, Some("a.memo.lease.lease".len()));
    }

    #[test]
    fn a_name_that_is_too_long_is_refused() {
        assert_eq!(file_name(&"a".repeat(249)).unwrap().len(), 255);
        let error = file_name(&"ü".repeat(125)).unwrap_err().to_string();
        let start = "ü".repeat(32);
        assert_eq!(
            error,
            format!(
                "the lease `{start}…` needs a file name of 756 bytes: choose a name for which 255 are enough"
            )
        );
    }

    proptest! {
        #![proptest_config(crate::random_cases::cases(64))]

        #[test]
        fn the_name_can_be_read_from_the_file_name(name in "\\PC{0,20}|[a-zA-Z./%\\x00-\\x20]{0,40}") {
            let file = file_name(&name).unwrap();
            let (mut bytes, mut decoded) = (file.strip_suffix(SUFFIX).unwrap().bytes(), Vec::new());
            while let Some(byte) = bytes.next() {
                decoded.push(match byte {
                    b'%' => {
                        let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                        u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
                    }
                    byte => byte,
                });
            }
            prop_assert_eq!(decoded, name.as_bytes());
            prop_assert!(!file.contains('/') && !file.contains('\0'));
        }
    }
}
