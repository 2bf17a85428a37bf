//! The text of one datagram.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::start_of::start_of;

/// How many bytes of a status are sent. systemd drops datagrams above 4 KiB.
const STATUS: usize = 1024;

/// One datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Ready { status: String },
    Reloading,
    Stopping { status: String, extend: Duration },
    Extend(Duration),
    Status(String),
    Watchdog,
    RestartReset,
}

impl Message {
    /// Returns the assignments. Those of a reload have the time of this call.
    pub(super) fn text(&self) -> String {
        let lines = match self {
            Self::Ready { status } => vec![NotifyState::Ready.to_string(), assignment(status)],
            Self::Reloading => {
                // systemd requires the time. Without it, the reload fails instead of this program.
                let now = NotifyState::monotonic_usec_now().map(|now| now.to_string());
                vec![NotifyState::Reloading.to_string(), now.unwrap_or_default()]
            }
            Self::Stopping { status, extend } => vec![
                NotifyState::Stopping.to_string(),
                assignment(status),
                Self::Extend(*extend).text(),
            ],
            Self::Extend(by) => {
                let micros = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
                vec![NotifyState::ExtendTimeoutUsec(micros).to_string()]
            }
            Self::Status(status) => vec![assignment(status)],
            Self::Watchdog => vec![NotifyState::Watchdog.to_string()],
            Self::RestartReset => vec![NotifyState::Custom("RESTART_RESET=1").to_string()],
        };
        lines.join("\n")
    }
}

fn assignment(status: &str) -> String {
    // A status may come from a child. A line break would begin another assignment.
    let line = status.replace(char::is_control, " ");
    NotifyState::Status(start_of(&line, STATUS)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_assignments() {
        let status = || "3 of 3 active".to_owned();
        let extend = Duration::from_millis(1500);
        for (message, text) in [
            (Message::Ready { status: status() }, "READY=1\nSTATUS=3 of 3 active"),
            (
                Message::Stopping { status: status(), extend },
                "STOPPING=1\nSTATUS=3 of 3 active\nEXTEND_TIMEOUT_USEC=1500000",
            ),
            (Message::Extend(Duration::MAX), "EXTEND_TIMEOUT_USEC=4294967295"),
            (Message::Status(status()), "STATUS=3 of 3 active"),
            (Message::Watchdog, "WATCHDOG=1"),
            (Message::RestartReset, "RESTART_RESET=1"),
        ] {
            assert_eq!(message.text(), text);
        }
        let reloading = Message::Reloading.text();
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(time.parse::<u64>().unwrap() > 0);
    }

    #[test]
    fn a_status_is_one_line_of_at_most_a_kibibyte() {
        let status = |text: &str| Message::Status(text.to_owned()).text();
        assert_eq!(status("a\nSTOPPING=1\r\0b"), "STATUS=a STOPPING=1  b");
        assert_eq!(status(&"x".repeat(5000)), format!("STATUS={}", "x".repeat(1024)));
        // Three bytes each.
        assert_eq!(status(&"€".repeat(500)), format!("STATUS={}", "€".repeat(341)));
    }
}
