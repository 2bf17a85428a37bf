//! The last name of a path below a dynamic supervisor, such as `conn#17`.

use std::fmt;
use std::num::NonZeroU64;

/// The name of a child with its serial number, since names repeat under a dynamic supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SerialName<'a> {
    pub(crate) name: &'a str,
    pub(crate) serial: NonZeroU64,
}

impl<'a> SerialName<'a> {
    /// Returns `None` if the text names no child.
    ///
    /// Each child has one name: `conn#007` and `conn#+7` don't name `conn#7`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (name, serial) = text.rsplit_once('#')?;
        let serial = Some(serial).filter(|it| it.starts_with(|c| matches!(c, '1'..='9')))?;
        Some(Self { name, serial: serial.parse().ok()? })
    }
}

impl fmt::Display for SerialName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.serial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_serial_number_is_read_as_it_is_written() {
        for (name, serial) in [("conn", 1), ("conn", u64::MAX), ("a.b", 70)] {
            let serial = NonZeroU64::new(serial).unwrap();
            let named = SerialName { name, serial };
            assert_eq!(SerialName::parse(&named.to_string()), Some(named));
        }
        for text in ["conn", "conn#", "conn#0", "conn#007", "conn#+7", "conn#-7", "conn#1x"] {
            assert_eq!(SerialName::parse(text), None, "{text}");
        }
    }
}
