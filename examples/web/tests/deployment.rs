//! The unit for systemd and the manifest for Kubernetes, checked by their tools where these are installed.

#![cfg(unix)]
#![expect(
    clippy::print_stdout,
    reason = "without the tools, nothing is checked, and the test says so"
)]

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

const MAIN: &str = include_str!("../src/main.rs");
const UNIT: &str = include_str!("../deploy/web.service");
const MANIFEST: &str = include_str!("../deploy/web.yaml");

/// Returns the output of a tool. Without the tool, nothing is checked, unless `WEB_DEPLOYMENT` is set.
fn run(tool: &mut Command) -> Option<Output> {
    match tool.output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert!(std::env::var_os("WEB_DEPLOYMENT").is_none(), "{tool:?}: {error}");
            println!("web: nothing was checked: {tool:?}: {error}");
            None
        }
    }
}

/// Returns what the manifest says, with the document of each kind by its kind.
fn manifest() -> Option<Vec<Value>> {
    let program =
        "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.argv[1]))))";
    let output = run(Command::new("python3").args(["-c", program, MANIFEST]))?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("No module named 'yaml'") && std::env::var_os("WEB_DEPLOYMENT").is_none() {
        println!("web: nothing was checked: {errors}");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn systemd_accepts_the_unit() {
    let program = "/usr/local/bin/web";
    assert_eq!(UNIT.matches(&format!("ExecStart={program} ")).count(), 1);
    let dir = tempfile::tempdir().unwrap();
    let unit = dir.path().join("web.service");
    let installed =
        UNIT.replace(&format!("={program} "), &format!("={} ", env!("CARGO_BIN_EXE_web")));
    fs::write(&unit, installed).unwrap();

    let Some(output) = run(Command::new("systemd-analyze").arg("verify").arg(&unit)) else {
        return;
    };

    let errors = String::from_utf8_lossy(&output.stderr);
    // Before systemd 253 there is no `notify-reload`.
    let unknown =
        |line: &&str| !line.ends_with("Failed to parse service type, ignoring: notify-reload");
    let of_unit = |line: &&str| line.contains("web.service");
    let problems: Vec<_> = errors.lines().filter(of_unit).filter(unknown).collect();
    assert!(output.status.success() && problems.is_empty(), "{errors}");
}

#[test]
fn the_manifest_has_the_probes_and_the_ports_of_the_program() {
    let Some(documents) = manifest() else { return };
    let kinds: Vec<_> =
        documents.iter().map(|document| document["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Deployment", "PersistentVolumeClaim", "Service"]);
    let pod = &documents[0]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"]["path"], path);
        assert_eq!(container[probe]["httpGet"]["port"], "probes");
    }
    let ports = container["ports"].as_array().unwrap();
    let listens = |flag: &str, port: &Value| {
        let argument = format!("--{flag}=0.0.0.0:{}", port["containerPort"]);
        assert!(
            container["args"].as_array().unwrap().iter().any(|it| *it == argument),
            "{argument}"
        );
    };
    ["listen", "probes", "metrics"].iter().zip(ports).for_each(|(flag, port)| listens(flag, port));
    assert_eq!(documents[0]["spec"]["strategy"]["type"], "Recreate");
    assert_eq!(documents[0]["spec"]["selector"]["matchLabels"], documents[2]["spec"]["selector"]);
}

/// `STOP_LIMIT` of the program is checked by the program: it warns if a stop may take longer.
#[test]
fn the_service_managers_wait_for_as_long_as_the_program_says() {
    assert!(MAIN.contains("const STOP_LIMIT: Duration = Duration::from_secs(30);"));
    assert_eq!(UNIT.matches("\nTimeoutStopSec=30\n").count(), 1);
    assert_eq!(MANIFEST.matches("\n      terminationGracePeriodSeconds: 30\n").count(), 1);
}
