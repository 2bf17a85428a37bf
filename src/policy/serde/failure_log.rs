//! The serialised form of `FailureLog`: a table with a level, and one for repeated failures.

use std::convert::Infallible;

use serde::Deserialize;

use crate::policy::failure_log::Critical;
use crate::policy::{FailureLog, LogLevel};
use crate::serde::{deserialize, serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a failure log such as { level = \"info\" }")]
struct FailureLogTable {
    level: LogLevel,
    critical: Option<CriticalTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a level such as { level = \"error\", after = 3 }")]
struct CriticalTable {
    level: LogLevel,
    after: u32,
}

serialize!(FailureLog { level, critical unless Option::is_none });
serialize!(Critical { level, after });
deserialize!(FailureLog: |table: FailureLogTable| {
    let log = Self::at(table.level);
    Ok::<_, Infallible>(table.critical.map_or(log, |it| log.critical(it.level, it.after)))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let log = FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3);
        let text = "level = \"info\"\n\n[critical]\nlevel = \"error\"\nafter = 3\n";
        assert_eq!(toml::to_string(&log).unwrap(), text);
        assert_eq!(toml::from_str::<FailureLog>(text).unwrap(), log);
    }
}
