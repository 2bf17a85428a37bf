//! Mistakes of files in TOML: their texts and places.

#[cfg(unix)]
use std::fs;
#[cfg(unix)]
use std::process::Command;

use serde::Deserialize;

use super::mistakes;
use crate::config::de::decode;
use crate::config::{Config, Secret};
use crate::policy::option_table::OPTIONS;

#[test]
fn an_empty_file_is_an_empty_configuration() {
    for text in ["", "\n", "# nothing\n", "\u{feff}", "[common]\n", "[\"app/a\"]\n"] {
        assert_eq!(mistakes(text), [""; 0], "{text}");
    }
}

#[test]
fn all_errors_of_the_syntax_are_reported() {
    let text = "[\"app/a\"]\nshutdown = \n[\"app/b\"]\nenabled = maybe\nwatchdog = \"0s\"\n";
    let expected = [
        "2:12 : string values must be quoted, expected literal string",
        "4:11 : string values must be quoted, expected literal string",
        "5:12 \"app/b\".watchdog: the duration is zero; write a longer one, such as \"10s\"",
    ];
    assert_eq!(mistakes(text), expected);
}

#[test]
fn ten_mistakes_of_one_file_are_reported_at_once() {
    let text = r#"strategy = "one_for_one"

["app//x"]

["app/ingest"]
strategy = "rest_for_some"
max_restarts = 5
on_exhausted = { pause = "0s" }
writer = { enabled = false }

["app/writer"]
shutdwon = "5s"
watchdog = "0s"
activation_timeout = 5
max_children = "many"

["app/writer".restart]
when = "sometimes"
min_backoff = "-1s"
factor = 0.5
failing_for = "0s"

["app/*/x"]
"#;
    let others = OPTIONS.len() - 5;
    let known = format!(
        "write `shutdown`, `auto_shutdown`, `start`, `strategy` or `period`, or one of {others} others"
    );
    let unknown_key = format!(
        "12:1 \"app/writer\".shutdwon: unknown key `shutdwon`; did you mean `shutdown`? {known}"
    );
    let expected = [
        "1:1 strategy: `strategy` is a value outside of a section; write it below the path of a child, such \
         as [\"app/ingest\"], or below [common]",
        "3:2 \"app//x\": the path `app//x` has an empty name; write [\"app/x\"], for example",
        "6:12 \"app/ingest\".strategy: unknown strategy `rest_for_some`; did you mean `rest_for_one`? write `one_for_one`, `one_for_all` \
         or `rest_for_one`",
        "7:1 \"app/ingest\".max_restarts: `max_restarts` needs a `period`; add period = \"60s\", for example",
        "8:16 \"app/ingest\".on_exhausted: the `pause` is zero; write { pause = \"15s\" }, for example",
        "9:1 \"app/ingest\".writer: unknown key `writer`; write a child as a path, such as \
         [\"app/ingest/writer\"]",
        &unknown_key,
        "13:12 \"app/writer\".watchdog: the duration is zero; write a longer one, such as \"10s\"",
        "14:22 \"app/writer\".activation_timeout: invalid type: integer `5`, expected a duration with a unit \
         in quotes, such as \"5s\" or \"1m 30s\"",
        "15:16 \"app/writer\".max_children: invalid type: string \"many\", expected a whole number that isn't \
         negative",
        "18:8 \"app/writer\".restart.when: unknown restart type `sometimes`; write `permanent`, `always`, \
         `transient`, `on_failure`, `temporary`, `never`, `no`, `on_stop`, `on_success`, `on_abnormal`, \
         `on_abort` or `on_watchdog`",
        "19:1 \"app/writer\".restart.min_backoff: `min_backoff` needs `max_backoff`; add max_backoff = \"30s\", \
         for example",
        "19:15 \"app/writer\".restart.min_backoff: `-1s` isn't a duration; write it with a unit, such as \
         \"5s\" or \"1m 30s\"",
        "21:15 \"app/writer\".restart.failing_for: `failing_for` is zero, so no failure would be followed by a \
         restart; write failing_for = \"60s\", or consecutive_restarts = 0",
        "23:2 \"app/*/x\": the path `app/*/x` has `*` in it; only a last name that is `*` stands \
         for the children of a supervisor; write [\"app/x\"], for example",
    ];
    assert_eq!(mistakes(text), expected);
}

#[test]
fn keys_that_exclude_or_need_each_other_are_mistakes() {
    let table = [
        (
            "[a]\nmax_restarts = 5\nperiod = \"1s\"\nintensity = { max = 1, period = \"1s\" }",
            "2:1 a.max_restarts: `max_restarts` and `intensity` set the same limit; remove one of them",
        ),
        (
            "[a]\nshutdown = \"5s\"\ndrain = \"10s\"",
            "3:1 a.drain: `drain` and `shutdown` set the same grace; remove one of them",
        ),
        (
            "[a]\nperiod = \"1s\"",
            "2:1 a.period: `period` needs `max_restarts`; add max_restarts = 5, for example",
        ),
        (
            "[a]\nmax_restarts = 5\nperiod = \"0s\"",
            "3:10 a.period: `period` is zero, so no restart would count; write period = \"60s\"",
        ),
        (
            "[a]\nmax_restarts = 5\nperiod = \"1s\"\nunlimited_restarts = true",
            "4:1 a.unlimited_restarts: `unlimited_restarts` and `max_restarts` exclude each other; remove one \
             of them",
        ),
        (
            "[a.restart]\nown_restarts = { max = 5, period = \"1s\" }\nunlimited_restarts = true",
            "3:1 a.restart.unlimited_restarts: `unlimited_restarts` and `own_restarts` exclude each other; \
             remove one of them",
        ),
        (
            "[a.restart]\nown_restarts = { max = 5, period = \"1s\" }\nintensity = { max = 1, period = \"1s\" }",
            "2:1 a.restart.own_restarts: `own_restarts` and `intensity` set the same limit; remove one of them",
        ),
        (
            "[a.restart]\nmax_restarts = 5\nperiod = \"60s\"",
            "2:1 a.restart.max_restarts: `max_restarts` and `period` are the limit of all children of a \
             supervisor together; for one child write own_restarts = { max = 12, period = \"5m\" }",
        ),
        (
            "[a.restart]\nown_restarts = { max = 5, period = \"0s\" }",
            "2:36 a.restart.own_restarts.period: `period` is zero, so no restart would count; write period = \"60s\"",
        ),
        (
            "[a]\nleak_timeout = \"0s\"",
            "2:16 a.leak_timeout: the duration is zero; write a longer one, such as \"10s\"",
        ),
        (
            "[a.restart]\nmin_backoff = \"1s\"\nmax_backoff = \"1s\"\nbackoff = { curve = \"none\" }",
            "2:1 a.restart.min_backoff: `min_backoff` and `backoff` exclude each other; remove one of them",
        ),
        (
            "[a.restart]\nmax_backoff = \"1s\"",
            "2:1 a.restart.max_backoff: `max_backoff` needs `min_backoff`; add min_backoff = \"5s\", for \
             example",
        ),
        (
            "[a.restart]\nfactor = 2",
            "2:1 a.restart.factor: `factor` needs `min_backoff` and `max_backoff`; add min_backoff = \"5s\" and \
             max_backoff = \"30s\", for example",
        ),
        (
            "[a.restart]\nauto_reset = \"5s\"\nbackoff = { curve = \"none\" }",
            "2:1 a.restart.auto_reset: `auto_reset` belongs to `min_backoff` and `max_backoff`; write \
             reset_after = \"5s\" in the table `backoff` instead",
        ),
        (
            "[a.restart]\nmax_retries = 1\nconsecutive_restarts = 1",
            "2:1 a.restart.max_retries: `max_retries` and `consecutive_restarts` set the same limit; remove \
             one of them",
        ),
        (
            "[a.restart]\nmin_backoff = \"5s\"\nmax_backoff = \"1s\"",
            "3:15 a.restart.max_backoff: `max_backoff` is 1s, and `min_backoff` is 5s; write at least 5s",
        ),
        (
            "[a.restart]\nmin_backoff = \"0s\"\nmax_backoff = \"1s\"",
            "2:15 a.restart.min_backoff: `min_backoff` is zero; write a longer delay, such as \"5s\", or \
             backoff = { curve = \"none\" } for no delay",
        ),
        (
            "[a.restart]\nmin_backoff = \"1s\"\nmax_backoff = \"1s\"\nfactor = 0.5",
            "4:10 a.restart.factor: `factor` is 0.5; write a finite number of at least 1, such as 2.0",
        ),
        (
            "[a.restart]\nwhen = \"never\"\nrestart = \"never\"",
            "3:1 a.restart.restart: `when` and `restart` are the same setting; remove one of them",
        ),
        (
            "[a]\nrestart = \"never\"\nsystem = { restart_policy = { when = \"Never\" } }",
            "3:12 a.system.restart_policy: `restart` and `system.restart_policy` are the same setting; remove \
             one of them",
        ),
        (
            "[a.system]\nrestart_polcy = 1",
            "2:1 a.system.restart_polcy: unknown key `restart_polcy`; did you mean `restart_policy`?",
        ),
        (
            "[a]\nsystem = 1",
            "2:10 a.system: `system` is a table with the key `restart_policy`; write restart = \"always\", for \
             example, instead",
        ),
        (
            "[a.system.restart_policy]\nmax_retries = -1",
            "2:15 a.system.restart_policy.max_retries: invalid value: integer `-1`, expected a whole number \
             from 0 to 4294967295",
        ),
        (
            "[a]\nrestart = 5",
            "2:11 a.restart: invalid type: integer `5`, expected a restart type such as \"on_failure\", or a \
             table such as { when = \"on_failure\", min_backoff = \"5s\", max_backoff = \"30s\" }",
        ),
        (
            "[app.restrat]\nwhen = \"never\"",
            "1:6 app.restrat: unknown key `restrat`; did you mean `restart`? write a child as a path, such as \
             [\"app/restrat\"]",
        ),
        (
            "[a.config]\nx = 99999999999999999999",
            "2:5 : the number 99999999999999999999 is out of range; write one from -9223372036854775808 to \
             9223372036854775807",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(mistakes(text), [expected], "{text}");
    }
}

#[test]
fn a_mistake_shows_its_line_with_the_value_underlined() {
    let text = format!("{}[\"app/writer\".restart]\nwhen = \"sometimes\"\n", "\n".repeat(10));
    let error = Config::from_toml(&text, "feed.toml").check().unwrap_err().to_string();
    let expected = "feed.toml:12:8: unknown restart type `sometimes`; write `permanent`, `always`, \
                    `transient`, `on_failure`, `temporary`, `never`, `no`, `on_stop`, `on_success`, \
                    `on_abnormal`, `on_abort` or `on_watchdog`
   |
12 | when = \"sometimes\"
   |        ^^^^^^^^^^^
   key: \"app/writer\".restart.when";
    assert_eq!(error, expected);
}

/// Returns the line and the carets of the only mistake.
fn excerpt(text: &str) -> (String, String) {
    let error = Config::from_toml(text, "x").check().unwrap_err().to_string();
    let mut lines = error.lines().skip(2).map(|line| line.split_once("| ").unwrap().1.to_owned());
    (lines.next().unwrap(), lines.next().unwrap())
}

#[test]
fn the_caret_is_below_the_value_in_a_line_with_any_characters() {
    let (line, carets) = excerpt("[a]\nrestart.\"ä€😀\" = 1\n");
    assert_eq!((&*line, &*carets), ("restart.\"ä€😀\" …", "        ^^^^^"));
    let (line, carets) = excerpt("[a]\n\t\trestart\t=\t\"ä\u{202e}\"\r\n");
    assert_eq!((&*line, &*carets), ("  restart = \"ä \"", "            ^^^^"));
}

#[test]
fn a_long_line_is_cut_around_the_caret() {
    let pad = "ä".repeat(300);
    let text = format!("[a]\nrestart = {{ \"{pad}\" = 1, when = \"{pad}\" }}\n");
    let error = Config::from_toml(&text, "x").check().unwrap_err();
    for mistake in error.mistakes() {
        let shown = mistake.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let line = lines[2].split_once("| ").unwrap().1;
        let carets = lines[3].split_once("| ").unwrap().1;
        assert!(line.chars().count() <= 160, "{line}");
        assert!(carets.chars().count() <= 161, "{carets}");
        let column = carets.find('^').unwrap();
        let under: String = line.chars().skip(column).take(3).collect();
        assert_eq!(under, "\"ää");
    }
    assert_eq!(error.mistakes().len(), 2);
}

#[test]
fn at_most_fifty_mistakes_are_shown() {
    let text: String = (0..62).map(|number| format!("[s{number}]\nenabled = 1\n")).collect();
    let error = Config::from_toml(&text, "feed.toml").check().unwrap_err();
    assert_eq!(error.mistakes().len(), 62);
    let shown = error.to_string();
    assert_eq!(shown.matches("feed.toml:").count(), 50);
    assert!(shown.ends_with("\n\n… and 12 more"), "{shown}");
}

#[test]
fn a_mistake_of_the_common_values_is_reported_at_its_place_once() {
    let text = "[common]\nwatchdog = \"0s\"\n[\"a/*\"]\nfoo = 1\nshutdown = 5\n[\"a/b\"]\n[c]\n";
    let found = mistakes(text);
    let starts: Vec<_> = found.iter().map(|it| it.split(": ").next().unwrap()).collect();
    assert_eq!(starts, ["2:12 common.watchdog", "4:1 \"a/*\".foo", "5:12 \"a/*\".shutdown"]);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_a_mistake() {
    let directory = std::env::temp_dir().join(format!("verger-config-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let [missing, binary, good, large, pipe] =
        ["missing.toml", "binary.toml", "good.toml", "large.toml", "pipe"]
            .map(|name| directory.join(name));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::write(&binary, b"[a]\nx = \xff\n").unwrap();
    fs::write(&good, "[a]\nenabled = true\n").unwrap();
    fs::write(&large, vec![b'\n'; 16 * 1024 * 1024 + 1]).unwrap();
    let table = [
        (&directory, "this is a directory; write the path of a file in it"),
        (&missing, "the file doesn't exist; create it, or check its path"),
        (&binary, "the file isn't valid UTF-8 in line 2; save it as UTF-8"),
        (&large, "the file is larger than 16 MiB; split it, or check its path"),
        (
            &pipe,
            "this is a pipe or a device, which may never end; write the path of an ordinary file",
        ),
    ];
    for (path, expected) in table {
        let error = Config::read(path).check().unwrap_err();
        assert_eq!(error.to_string(), format!("{}: {expected}", path.display()));
        assert_eq!(error.mistakes()[0].file(), path.to_str());
    }
    assert!(Config::read(&good).check().is_ok());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_line_with_a_secret_is_not_shown() {
    #[derive(Debug, Deserialize)]
    struct Database {
        #[serde(rename = "password")]
        _password: Secret<u32>,
        #[serde(rename = "port")]
        _port: u16,
    }
    let text = "[a.config]\ndb = { password = \"hunter2\", port = \"x\" }\nport = 1\n";
    let config = Config::from_toml(text, "feed.toml");
    let node = config.sections("app").0["a"].node.at("config.db").unwrap().clone();
    let found = decode::<Database>(&node, "a.config.db").unwrap_err();
    let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
    let expected = [
        "feed.toml:2:19: invalid type of a secret, expected a whole number from 0 to 4294967295\n   key: \
         a.config.db.password",
        "feed.toml:2:37: invalid type: string \"x\", expected a whole number from 0 to 65535\n   key: \
         a.config.db.port",
    ];
    assert_eq!(shown, expected);
    assert!(!format!("{config:?}{node:?}{:?}", node.location).contains("hunter2"));
    let error = Config::from_toml("[a.config]\npassword = hunter2\n", "x").check().unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

/// Values that may be secrets aren't shown, whichever mistake is in their line.
#[test]
fn a_value_below_config_or_of_an_unknown_key_is_not_shown() {
    let table = [
        "[a.config]\nurl = \"hunter2\n",
        "[a.config]\nurl = hunter2\n",
        "[a.config]\nurl = 1\nurl = \"hunter2\"\n",
        "[a]\nconfig = { url = \"hunter2\" pool = 3 }\n",
        "[a]\nurl = \"hunter2\"\n",
        "[a]\npassword = \"hunter2\n",
        "[db]\nurl = \"\"\"\nhunter2\n\\q\"\"\"\n",
        "a = { config = { password = \"hunter2\" }, shutdwon = \"5s\" }\n",
        "\"a//b\" = { config = { password = \"hunter2\" } }\n",
        "a = { confg = { password = \"hunter2\" } }\n",
        "url = \"hunter2\"\n",
        "[a]\nenabled = \"x\" # was hunter2, key = 4\n",
    ];
    for text in table {
        let error = Config::from_toml(text, "x.toml").check().unwrap_err().to_string();
        assert!(!error.contains("hunter"), "{text}\n{error}");
        assert!(error.contains("x.toml:"), "{error}");
    }
    let (line, carets) = excerpt("[a]\nshutdown = \"5s\"\nurl = \"hunter2\"\n");
    assert_eq!((&*line, &*carets), ("url …", "^^^"));
}

#[test]
fn a_misspelt_word_has_a_suggestion() {
    let table = [
        ("on_leak = \"parkk\"", "did you mean `park`? write `restart` or `park`"),
        (
            "restart = { backoff = { curve = \"exponentail\", min = \"1s\", max = \"2s\" } }",
            "did you mean `exponential`?",
        ),
        (
            "shutdown = 5",
            "expected a time with a unit in quotes, such as \"5s\", \"drain 5s\", \"brutal_kill\" or \"infinity\"",
        ),
    ];
    for (line, expected) in table {
        let [found] = &mistakes(&format!("[a]\n{line}\n"))[..] else { panic!("{line}") };
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn large_nonsense_is_refused_with_few_mistakes() {
    const MILLION: usize = 1_000_000;
    let table = [
        "=\n".repeat(MILLION),
        "[".repeat(2 * MILLION),
        (0..50_000).map(|number| format!("[s{number}]\nenabled = 1\n")).collect(),
        (0..100_000).map(|number| format!("a{number} = 1\n")).collect(),
        shared_nonsense("[common.restart]"),
        shared_nonsense("[\"*\".restart]"),
        format!(
            "[a]\n{}",
            (0..100_000).map(|number| format!("a{number} = 1\n")).collect::<String>()
        ),
    ];
    for text in table {
        let error = Config::from_toml(&text, "x").check().unwrap_err();
        assert!(error.mistakes().len() <= 1_000);
        assert!(error.to_string().len() < 200_000);
    }
}

/// Values with mistakes beneath many sections.
fn shared_nonsense(header: &str) -> String {
    let values: String = (0..20_000).map(|number| format!("a{number} = 1\n")).collect();
    let sections: String = (0..20_000).map(|number| format!("[s{number}]\n")).collect();
    format!("{header}\n{values}{sections}")
}
