//! What the crates say of themselves: the table in `claims.txt`.

/// What a claim means for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The probe can't run.
    Impossible,
    /// The probe doesn't run, because the crate claims nothing of the kind.
    Unclaimed,
    /// The probe runs, and a *no* doesn't count, because the crate claims nothing of the kind.
    Disclaimed,
}

/// The claim of a crate about a probe, with a note in the crate's own terms.
pub fn claim(package: &str, probe: &str) -> Option<(Kind, &'static str)> {
    let lines = include_str!("claims.txt").lines().filter(|line| !line.starts_with('#'));
    let claims = lines.filter_map(|line| {
        let [of, kind, probes, note] = line.split(" | ").collect::<Vec<_>>()[..] else {
            return None;
        };
        let kind = match kind.trim() {
            "impossible" => Kind::Impossible,
            "unclaimed" => Kind::Unclaimed,
            _ => Kind::Disclaimed,
        };
        let is_about = of.trim() == package && probes.split(' ').any(|it| it == probe);
        is_about.then_some((kind, note))
    });
    claims.into_iter().next()
}
