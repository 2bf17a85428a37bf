//! A [`Status`] as a picture: an indented list, a row for each child.
//!
//! Each [`Look`] has its own shape, so that nothing depends on colours. The state is also written as a word.
//!
//! # Invariants
//!
//! 1. The picture grows by one row for each child, whatever the shape of the tree.
//! 2. No text reaches into the next column: texts are cut to the width of theirs.
//! 3. The style sheet is the same in every picture, and applies to elements of class `verger` only, so that a
//!    picture can be a part of a page.
//! 4. An escaped text closes no attribute and opens no element. A renderer shows it as it was, apart from two
//!    characters that XML can't hold.

use std::fmt::{self, Display, Write};

use super::Visit;
use super::words::{self, cut, cut_in_the_middle};
use crate::lifecycle::Lifecycle;
use crate::status::{ChildInfo, Status};

/// The size of the picture, in pixels, apart from the rows.
const WIDTH: usize = 1_080;
const MARGIN: usize = 20;
const HEADER: usize = 56;
/// The height of a row.
const ROW: usize = 24;
/// How far children are to the right of their supervisor.
const INDENT: usize = 20;
/// The level from which on children are no further to the right.
const LEVELS: usize = 6;
/// The column of the names: its end, if names need it, and what is free behind it.
const NAMES: usize = 320;
const GAP: usize = 16;
/// The widths of the columns behind it, in characters: `rest_for_one`, `deactivating`.
const WORD: usize = 14;
/// The width of 100 characters of the font, in pixels.
const CHARACTERS: usize = 783;
/// The lengths to which the texts that appear beside the pointer are cut.
const TIP_PATH: usize = 200;
const TIP: usize = 500;

const STYLE: &str = "\
.verger{background:#fff;font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
.verger tspan{unicode-bidi:isolate}
.verger .page{fill:#fff}
.verger text{fill:#1f2328;white-space:pre}
.verger .head,.verger .name,.verger .bad .state,.verger .loud .state{font-weight:600}
.verger .dim{fill:#59636e;font-weight:400}
.verger .guides{fill:none;stroke:#c8d1da}
.verger use{fill:currentColor;stroke:currentColor;stroke-width:1.5}
.verger .good{color:#1a7f37}
.verger .busy{color:#9a6700}
.verger .bad{color:#cf222e}
.verger .off{color:#59636e}
.verger .state{fill:currentColor}
@media (prefers-color-scheme:dark){
.verger{background:#0d1117}
.verger .page{fill:#0d1117}
.verger text{fill:#e6edf3}
.verger .dim{fill:#9198a1}
.verger .guides{stroke:#3d444d}
.verger .good{color:#3fb950}
.verger .busy{color:#d29922}
.verger .bad{color:#ff7b72}
.verger .off{color:#9198a1}
}
";

/// The shape of each look, around the point 0, 0.
const SHAPES: &str = r#"<defs>
<circle id="verger-waiting" r="4.5" fill="none" stroke-dasharray="2 1.5"/>
<g id="verger-activating"><circle r="4.5" fill="none"/><path d="M0-4.5A4.5 4.5 0 0 1 0 4.5Z"/></g>
<circle id="verger-active" r="4.5"/>
<path id="verger-unhealthy" d="M0-5.5 5.5 0 0 5.5-5.5 0Z"/>
<path id="verger-errored" d="M-4-4 4 4M4-4-4 4" stroke-width="2.5"/>
<path id="verger-restarting" d="M0-5 5 4H-5Z"/>
<rect id="verger-deactivating" x="-4" y="-4" width="8" height="8" fill="none"/>
<rect id="verger-stopped" x="-4" y="-4" width="8" height="8"/>
<path id="verger-held" d="M-2.5-4.5V4.5M2.5-4.5V4.5" stroke-width="3"/>
</defs>
"#;

impl Status {
    /// Returns the snapshot as a picture, an SVG document of its own.
    ///
    /// The picture is an indented list of all children with the facts that the text has (see [`Status`]). The
    /// state of a child shows as a word, by shape and by colour. The colours are dark on light, or light on
    /// dark if the viewer prefers that. Facts that don't fit are cut, and appear in full beside the pointer.
    ///
    /// The picture has no scripts and refers to nothing outside of it. A page may embed it as an image, or
    /// contain one as an element. Its size grows by one row for each child, 24 pixels and about 500 bytes. From
    /// the seventh level on, children are at the same indentation, with `+1` and so on before their names.
    ///
    /// ```
    /// # use verger::{Context, Supervisor, worker};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// let picture = app.status().await?.svg();
    /// assert!(picture.starts_with("<svg xmlns="));
    /// assert!(picture.contains("<title>app: 1 child</title>"));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[inline]
    pub fn svg(&self) -> String {
        let (mut guides, mut rows, mut count) = (String::new(), String::new(), 0);
        let ends = self.walk().map(|it| name_x(it.depth) + width(&name(&it)) + GAP);
        let policy_x = ends.max().unwrap_or_default().min(NAMES);
        for visit in self.walk() {
            guide(&mut guides, &visit);
            row(&mut rows, &visit, policy_x);
            count += 1;
        }
        let height = HEADER + count * ROW + MARGIN / 2;
        let name = cut_in_the_middle(self.root.child.path.as_str(), TIP_PATH);
        let (name, counts) = (Xml(name), Xml(words::counts(&self.root)));
        let (restarts, uptime) = (self.totals.restarts, words::age(self.program.uptime));
        let totals = format!("restarts={restarts} in {uptime} · pid {}", self.program.pid);
        let y = HEADER / 2 + 5;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"verger\" role=\"img\" width=\"{WIDTH}\" \
             height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n\
             <title>{name}: {counts}</title>\n\
             <style>\n{STYLE}</style>\n\
             {SHAPES}\
             <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
             <text class=\"head\" x=\"{MARGIN}\" y=\"{y}\">{counts}<tspan class=\"dim\"> · {totals}</tspan></text>\n\
             <path class=\"guides\" d=\"{guides}\"/>\n\
             {rows}\
             </svg>\n"
        )
    }
}

/// Where the shape of a child is.
#[inline]
fn x(depth: usize) -> usize {
    MARGIN + 6 + depth.min(LEVELS) * INDENT
}

#[inline]
fn y(number: usize) -> usize {
    HEADER + number * ROW + ROW / 2
}

/// Draws the line from a supervisor to a child. The line down is drawn with the last child, so that it is
/// drawn once.
#[inline]
fn guide(guides: &mut String, Visit { depth, number, above, .. }: &Visit<'_>) {
    let Some(above) = above.as_ref().filter(|_| *depth <= LEVELS) else { return };
    let (from, to, y_child) = (x(depth - 1), x(*depth) - 9, y(*number));
    if above.is_last {
        let y_above = y(above.number) + 9;
        guides.push_str(&format!("M{from} {y_above}V{y_child}H{to}"));
    } else {
        guides.push_str(&format!("M{from} {y_child}H{to}"));
    }
}

/// Where the name of a child begins.
#[inline]
fn name_x(depth: usize) -> usize {
    x(depth) + 14
}

/// The name of a child, after the number of levels by which it should be further to the right.
#[inline]
fn name(Visit { node, depth, .. }: &Visit<'_>) -> String {
    match depth.saturating_sub(LEVELS) {
        0 if *depth == 0 => node.child.path.to_string(),
        0 => node.child.path.name().to_owned(),
        hidden => format!("+{hidden} {}", node.child.path.name()),
    }
}

#[inline]
fn row(rows: &mut String, visit: &Visit<'_>, policy_x: usize) {
    let (node, child) = (visit.node, &visit.node.child);
    let look = Look::of(child);
    let tone = match look.tone() {
        Tone::Good => "good",
        Tone::Busy if look == Look::Restarting => "busy loud",
        Tone::Busy => "busy",
        Tone::Bad => "bad",
        Tone::Off => "off",
    };
    let (policy, state) = (words::policy(node), words::state(child.lifecycle));
    let limit = node.supervisor.as_deref().map(words::intensity);
    let facts =
        [words::time(child)].into_iter().chain(limit).chain(words::notes(node, words::FACT));
    let facts = facts.collect::<Vec<_>>().join(" · ");
    let path = cut_in_the_middle(child.path.as_str(), TIP_PATH);
    let tip = format!("{path} · {policy} · {state} · {}", cut(&facts, TIP));

    let (x, y, look) = (x(visit.depth), y(visit.number), look.name());
    let (name_x, name) = (name_x(visit.depth), name(visit));
    let state_x = policy_x + WORD * CHARACTERS / 100;
    let facts_x = state_x + WORD * CHARACTERS / 100;
    let (tip, name, facts) = (
        Xml(tip),
        Xml(cut_in_the_middle(&name, room(policy_x - name_x - GAP / 2, &name))),
        Xml(cut(&facts, room(WIDTH - MARGIN - facts_x, &facts))),
    );
    rows.push_str(&format!(
        "<g class=\"{tone}\" transform=\"translate(0 {y})\"><title>{tip}</title>\
         <use href=\"#verger-{look}\" x=\"{x}\"/><text y=\"4.5\">\
         <tspan class=\"name\" x=\"{name_x}\">{name}</tspan>\
         <tspan class=\"dim\" x=\"{policy_x}\">{policy}</tspan>\
         <tspan class=\"state\" x=\"{state_x}\">{state}</tspan>\
         <tspan x=\"{facts_x}\">{facts}</tspan></text></g>\n"
    ));
}

/// The width of a text, in pixels.
#[inline]
fn width(text: &str) -> usize {
    (text.chars().count() * widest(text) * CHARACTERS).div_ceil(100)
}

/// How many characters of a text fit into a width.
#[inline]
fn room(width: usize, text: &str) -> usize {
    width * 100 / CHARACTERS / widest(text)
}

/// How many narrow characters are as wide as one of a text. From U+1100 on, many are as wide as two.
#[inline]
fn widest(text: &str) -> usize {
    if text.chars().any(|c| c >= '\u{1100}') { 2 } else { 1 }
}

/// The look of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Waiting,
    Activating,
    Active,
    Unhealthy,
    Errored,
    Restarting,
    Deactivating,
    Stopped,
    Held,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    /// Running as intended.
    Good,
    /// Starting, stopping or waiting for a restart.
    Busy,
    /// In need of attention.
    Bad,
    /// Not running.
    Off,
}

impl Look {
    #[cfg(test)]
    pub(super) const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Activating,
        Self::Active,
        Self::Unhealthy,
        Self::Errored,
        Self::Restarting,
        Self::Deactivating,
        Self::Stopped,
        Self::Held,
    ];

    #[inline]
    pub(super) fn of(child: &ChildInfo) -> Self {
        match child.lifecycle {
            Lifecycle::Discovered
            | Lifecycle::Resolved
            | Lifecycle::Errored
            | Lifecycle::Restarting
            | Lifecycle::Stopped
                if child.held =>
            {
                Self::Held
            }
            Lifecycle::Discovered | Lifecycle::Resolved => Self::Waiting,
            Lifecycle::Activating => Self::Activating,
            Lifecycle::Active if child.healthy == Some(false) => Self::Unhealthy,
            Lifecycle::Active => Self::Active,
            Lifecycle::Errored => Self::Errored,
            Lifecycle::Restarting => Self::Restarting,
            Lifecycle::Deactivating => Self::Deactivating,
            Lifecycle::Stopped => Self::Stopped,
        }
    }

    /// A word for classes and ids.
    #[inline]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Activating => "activating",
            Self::Active => "active",
            Self::Unhealthy => "unhealthy",
            Self::Errored => "errored",
            Self::Restarting => "restarting",
            Self::Deactivating => "deactivating",
            Self::Stopped => "stopped",
            Self::Held => "held",
        }
    }

    #[inline]
    fn tone(self) -> Tone {
        match self {
            Self::Active => Tone::Good,
            Self::Activating | Self::Restarting | Self::Deactivating => Tone::Busy,
            Self::Unhealthy | Self::Errored => Tone::Bad,
            Self::Waiting | Self::Stopped | Self::Held => Tone::Off,
        }
    }
}

/// A text between the tags of an SVG, or in an attribute with double quotes.
struct Xml<T>(pub(super) T);

impl<T: Display> Display for Xml<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// A writer that escapes what it writes.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    #[inline]
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, c) in s.char_indices() {
            let escaped = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                // No XML document contains these, not even as a reference.
                '\u{fffe}' | '\u{ffff}' => "\u{fffd}",
                _ => continue,
            };
            self.0.write_str(&s[plain..at])?;
            self.0.write_str(escaped)?;
            plain = at + c.len_utf8();
        }
        self.0.write_str(&s[plain..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::status::samples;

    #[test]
    #[rustfmt::skip]
    fn each_child_is_a_row_with_shape_word_and_facts() {
        let svg = samples::service().svg();
        let (before, rows) = svg.split_once("</defs>\n").unwrap();

        assert_eq!(
            before.lines().take(2).chain(rows.lines()).collect::<Vec<_>>(),
            [
                r##"<svg xmlns="http://www.w3.org/2000/svg" class="verger" role="img" width="1080" height="354" viewBox="0 0 1080 354">"##,
                r##"<title>app: 11 children, 1 errored, 1 restarting, 1 discovered, 1 activating, 1 deactivating, 2 stopped</title>"##,
                r##"<rect class="page" width="1080" height="354"/>"##,
                r##"<text class="head" x="20" y="33">11 children, 1 errored, 1 restarting, 1 discovered, 1 activating, 1 deactivating, 2 stopped<tspan class="dim"> · restarts=5 in 2h15m · pid 4711</tspan></text>"##,
                r##"<path class="guides" d="M26 92H37M26 116H37M46 140H57M46 125V164H57M26 188H37M26 212H37M26 236H37M26 260H37M26 284H37M26 308H37M26 77V332H37"/>"##,
                r##"<g class="good" transform="translate(0 68)"><title>app · one_for_one · active · up 2h15m · 0/5 in 7m</title><use href="#verger-active" x="26"/><text y="4.5"><tspan class="name" x="40">app</tspan><tspan class="dim" x="143">one_for_one</tspan><tspan class="state" x="252">active</tspan><tspan x="361">up 2h15m · 0/5 in 7m</tspan></text></g>"##,
                r##"<g class="good" transform="translate(0 92)"><title>app/db · permanent · active · up 2h15m · &quot;pool 8/10&quot;</title><use href="#verger-active" x="46"/><text y="4.5"><tspan class="name" x="60">db</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">active</tspan><tspan x="361">up 2h15m · &quot;pool 8/10&quot;</tspan></text></g>"##,
                r##"<g class="good" transform="translate(0 116)"><title>app/ingest · rest_for_one · active · up 2h15m · 5/5 in 7m AT LIMIT</title><use href="#verger-active" x="46"/><text y="4.5"><tspan class="name" x="60">ingest</tspan><tspan class="dim" x="143">rest_for_one</tspan><tspan class="state" x="252">active</tspan><tspan x="361">up 2h15m · 5/5 in 7m AT LIMIT</tspan></text></g>"##,
                r##"<g class="good" transform="translate(0 140)"><title>app/ingest/writer · permanent · active · up 38s · restarts=2 · 12/64 messages · last: panicked: index out of bounds</title><use href="#verger-active" x="66"/><text y="4.5"><tspan class="name" x="80">writer</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">active</tspan><tspan x="361">up 38s · restarts=2 · 12/64 messages · last: panicked: index out of bounds</tspan></text></g>"##,
                r##"<g class="busy loud" transform="translate(0 164)"><title>app/ingest/mqtt · permanent · RESTARTING · retry in 4.2s (attempt 4) · restarts=3 · last: activation failed: no route to host</title><use href="#verger-restarting" x="66"/><text y="4.5"><tspan class="name" x="80">mqtt</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">RESTARTING</tspan><tspan x="361">retry in 4.2s (attempt 4) · restarts=3 · last: activation failed: no route to host</tspan></text></g>"##,
                r##"<g class="bad" transform="translate(0 188)"><title>app/cache · permanent · active · up 1m · UNHEALTHY</title><use href="#verger-unhealthy" x="46"/><text y="4.5"><tspan class="name" x="60">cache</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">active</tspan><tspan x="361">up 1m · UNHEALTHY</tspan></text></g>"##,
                r##"<g class="bad" transform="translate(0 212)"><title>app/feed · permanent · ERRORED · for 0s · parked · last: failed: no such table</title><use href="#verger-errored" x="46"/><text y="4.5"><tspan class="name" x="60">feed</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">ERRORED</tspan><tspan x="361">for 0s · parked · last: failed: no such table</tspan></text></g>"##,
                r##"<g class="off" transform="translate(0 236)"><title>app/migrate · permanent · stopped · for 2h15m · last: ended normally</title><use href="#verger-stopped" x="46"/><text y="4.5"><tspan class="name" x="60">migrate</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">stopped</tspan><tspan x="361">for 2h15m · last: ended normally</tspan></text></g>"##,
                r##"<g class="busy" transform="translate(0 260)"><title>app/http · permanent · activating · for 0s</title><use href="#verger-activating" x="46"/><text y="4.5"><tspan class="name" x="60">http</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">activating</tspan><tspan x="361">for 0s</tspan></text></g>"##,
                r##"<g class="off" transform="translate(0 284)"><title>app/search · permanent · discovered · for 0s · for feed, http</title><use href="#verger-waiting" x="46"/><text y="4.5"><tspan class="name" x="60">search</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">discovered</tspan><tspan x="361">for 0s · for feed, http</tspan></text></g>"##,
                r##"<g class="busy" transform="translate(0 308)"><title>app/old · permanent · deactivating · for 0s</title><use href="#verger-deactivating" x="46"/><text y="4.5"><tspan class="name" x="60">old</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">deactivating</tspan><tspan x="361">for 0s</tspan></text></g>"##,
                r##"<g class="off" transform="translate(0 332)"><title>app/report · permanent · stopped · for 0s · 2/5 in 1m · held by operator: disk swap</title><use href="#verger-held" x="46"/><text y="4.5"><tspan class="name" x="60">report</tspan><tspan class="dim" x="143">permanent</tspan><tspan class="state" x="252">stopped</tspan><tspan x="361">for 0s · 2/5 in 1m · held by operator: disk swap</tspan></text></g>"##,
                r##"</svg>"##,
            ]
        );
    }

    #[test]
    #[rustfmt::skip]
    fn a_hostile_text_stays_in_its_element() {
        let svg = samples::hostile().svg();

        assert_eq!(
            svg.lines().rev().nth(1).unwrap(),
            r##"<g class="good" transform="translate(0 92)"><title>app/&quot;&lt;b&gt;&amp;\ · permanent · active · up 0s · &quot;&quot;&lt;script&gt;alert('&amp;')&lt;/script&gt;\ [31m %%{init}%%`#1&quot; · last: panicked: &quot;&lt;script&gt;alert('&amp;')&lt;/script&gt;\ [31m %%{init}%%`#1</title><use href="#verger-active" x="46"/><text y="4.5"><tspan class="name" x="60">&quot;&lt;b&gt;&amp;\</tspan><tspan class="dim" x="123">permanent</tspan><tspan class="state" x="232">active</tspan><tspan x="341">up 0s · &quot;&quot;&lt;script&gt;alert('&amp;')&lt;/script&gt;\ [31m %%{init}%%`#1&quot; · last: panicked: &quot;&lt;script&gt;aler…</tspan></text></g>"##,
        );
    }

    #[test]
    fn each_shape_is_defined_and_each_tone_has_two_colours() {
        let svg = samples::service().svg();

        for look in super::Look::ALL {
            assert_eq!(svg.matches(&format!("id=\"verger-{}\"", look.name())).count(), 1);
        }
        for tone in ["good", "busy", "bad", "off"] {
            assert_eq!(svg.matches(&format!("\n.verger .{tone}{{color:")).count(), 2, "{tone}");
        }
    }

    #[test]
    fn a_deep_or_wide_tree_is_a_picture_of_linear_size() {
        samples::in_a_small_stack(|| {
            let svg = samples::deep(1_000).svg();
            assert_eq!(svg.matches("<use ").count(), 1_001);
            assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
            assert!(svg.contains(">+994 w</tspan>"), "levels that are not drawn");
            let one_level = svg.len() as f64 / 1_001.0;
            assert!(one_level < 700.0, "{one_level} bytes");

            let (half, whole) = (samples::wide(5_000).svg(), samples::wide(10_000).svg());
            assert_eq!(whole.matches("<use ").count(), 10_001);
            assert!(
                whole.len() < 2 * half.len() + half.len() / 50,
                "{} {}",
                half.len(),
                whole.len()
            );
        });
    }

    #[test]
    fn a_text_is_cut_to_its_column() {
        let app = Path::root("app");
        let long = |character: &str| {
            let mut node = samples::node(&app.join(&character.repeat(80)), Vec::new());
            node.child.status = Some(character.repeat(100));
            node
        };
        let svg = samples::status(samples::node(&app, vec![long("x"), long("語")])).svg();
        let lengths = |line: &str| {
            let [name, .., facts] = &line.split("<tspan").skip(1).collect::<Vec<_>>()[..] else {
                panic!("no columns: {line}");
            };
            [name, facts].map(|text| text.split(['<', '>']).nth(1).unwrap().chars().count())
        };
        let rows: Vec<_> = svg.lines().filter(|line| line.contains("<use ")).map(lengths).collect();

        // The quotes are longer where they are escaped.
        assert_eq!(rows, [[3, 17], [32, 66 + 5], [16, 33 + 5]], "name and facts");
    }

    #[test]
    fn what_has_a_meaning_in_xml_is_escaped_and_nothing_else() {
        let text = r##"a "b" <script>&amp; \n #1 100% $2 `c` *d* {e} ü日"##;
        assert_eq!(
            Xml(text).to_string(),
            r##"a &quot;b&quot; &lt;script&gt;&amp;amp; \n #1 100% $2 `c` *d* {e} ü日"##
        );
    }

    #[test]
    fn characters_that_xml_cannot_hold_are_replaced() {
        assert_eq!(Xml("a\u{fffe}b\u{ffff}").to_string(), "a\u{fffd}b\u{fffd}");
    }
}
