//! Reading of configuration files: no text makes it panic, and each mistake is at a place of the text.

use verger::config::Config;

/// Reads any bytes as a file, and as the values of one section.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    check(&text);
    check(&format!("[\"app/a\".restart]\n{text}"));
    check(&format!("[common]\n{text}\n[app]\n{text}"));
}

fn check(text: &str) {
    let config = Config::from_toml(text, "app.toml");
    // What is shown of a configuration must not panic either.
    drop(format!("{config:?}"));
    let Err(error) = config.check() else { return };
    assert!(!error.mistakes().is_empty(), "an error has mistakes");
    let lines: Vec<&str> = text.split('\n').collect();
    for mistake in error.mistakes() {
        assert!(!mistake.message().is_empty(), "a mistake says what is wrong");
        if let (Some(line), Some(column)) = (mistake.line(), mistake.column()) {
            let line = lines.get(line - 1).expect("a line of the text");
            assert!(column <= line.chars().count() + 1, "a column of its line");
        }
    }
    assert!(error.to_string().len() < 1 << 20, "an error can be read");
}
