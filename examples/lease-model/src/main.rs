//! Checks both configurations, and prints the number of states.

use std::process::ExitCode;
use std::time::Instant;

use lease_model::model::{Bounds, Lease};
use stateright::{Checker, Model};

fn main() -> ExitCode {
    let mut is_right = true;
    for (name, bounds) in [("late messages", Bounds::LATE), ("a crash", Bounds::PROMPT)] {
        let began = Instant::now();
        let checker = Lease { bounds, mutant: None }.checker().threads(2).spawn_dfs().join();
        println!(
            "{name}: {} states, {} of them different, {} steps deep, in {:.1?}",
            checker.state_count(),
            checker.unique_state_count(),
            checker.max_depth(),
            began.elapsed()
        );
        for (property, path) in checker.discoveries() {
            let found = checker.discovery_classification(property);
            println!("  {found}: {property}");
            if found.to_string() == "counterexample" {
                println!("{path}");
                is_right = false;
            }
        }
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
