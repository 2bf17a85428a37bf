//! What the crates cost: the same work on each, on tokio alone, on Erlang/OTP and on Go suture.
//!
//! ```text
//! ... -- speed                          measures, and prints the tables
//! ... -- speed --write                  writes them into the book
//! ... -- speed --only restart,deep      measures only the work whose name begins with one of these
//! ... -- speed --rounds 1               instead of 3
//! ```

mod columns;
mod report;
mod rounds;
mod runs;
mod work;

use self::work::Work;

/// Carries out the arguments behind `speed`.
///
/// # Errors
///
/// An argument is wrong, or the page can't be written.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    if let ["measure", column, work] = *arguments {
        columns::measure(column, work);
    }
    let (mut works, mut rounds, mut write): (Vec<_>, _, _) = (Work::all().collect(), 3, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
        match *argument {
            "--write" => write = true,
            "--rounds" => rounds = value()?.parse().map_err(|_| "`--rounds` needs a number")?,
            "--only" => {
                let only: Vec<_> = value()?.split(',').collect();
                works.retain(|work| only.iter().any(|it| work.name.starts_with(it)));
            }
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    if write && works.len() < Work::all().count() {
        return Err("the page is about all of the work: `--write` without `--only`".into());
    }
    let (columns, missing) = columns::all();
    let cells = rounds::measure(&columns, &works, rounds);
    let _ = std::fs::remove_dir_all(columns::scratch());
    report::publish(&columns, &missing, &cells, rounds, write)
}
