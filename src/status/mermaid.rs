//! A [`Status`] as a flowchart for Mermaid.
//!
//! # Invariants
//!
//! 1. Each line ends with a semicolon. Mermaid removes the last one of lines that look like styles, which would
//!    otherwise be that of an escaped character.

use std::collections::HashMap;

use super::escape::Mermaid;
use super::look::{Look, Tone};
use super::words::{self, cut};
use crate::status::Status;

/// The width to which a line of a label is cut.
const LINE: usize = 40;

impl Status {
    /// Returns the snapshot as a flowchart for Mermaid, with a final line break.
    ///
    /// GitHub, GitLab and mdBook draw it in Markdown, in a code block `mermaid`. Each child is a node, with
    /// the facts that the text has (see [`Status`]). The state of a child shows as a word, by shape and by
    /// colour. A dotted arrow leads from a child to a sibling that it waits for.
    ///
    /// By default, Mermaid draws no more than 500 arrows and 50,000 characters, which is a tree of 300 to
    /// 500 children. [`svg`](Self::svg) has no such limit.
    ///
    /// ```
    /// # use verger::{Context, Supervisor, worker};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// let chart = app.status().await?.mermaid();
    /// assert!(chart.starts_with("flowchart LR;\n"));
    /// assert!(chart.contains(r#"n1("db<br>permanent<br>active, up 0s"):::active;"#));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[inline]
    pub fn mermaid(&self) -> String {
        let mut chart = String::from("flowchart LR;\n");
        for visit in self.walk() {
            let (look, number) = (Look::of(&visit.node.child), visit.number);
            let (before, after) = shape(look);
            chart.push_str(&format!("  n{number}{before}\""));
            for (index, text) in words::label(visit.node, visit.depth == 0).iter().enumerate() {
                let line_break = if index == 0 { "" } else { "<br>" };
                chart.push_str(&format!("{line_break}{}", Mermaid(cut(text, LINE))));
            }
            chart.push_str(&format!("\"{after}:::{};\n", look.name()));
            if let Some(above) = visit.above {
                chart.push_str(&format!("  n{} --> n{number};\n", above.number));
            }
        }
        let numbers: HashMap<_, _> =
            self.walk().map(|it| (it.node.child.path.as_str(), it.number)).collect();
        for visit in self.walk() {
            for sibling in visit.waits_for() {
                let sibling = numbers[sibling.child.path.as_str()];
                chart.push_str(&format!("  n{} -.-> n{sibling};\n", visit.number));
            }
        }
        for look in Look::ALL {
            chart.push_str(&format!("  classDef {} {};\n", look.name(), style(look)));
        }
        chart
    }
}

/// What is before and after the label of a node, which gives it its shape.
#[inline]
fn shape(look: Look) -> (&'static str, &'static str) {
    match look {
        Look::Waiting | Look::Activating => ("([", "])"),
        Look::Active => ("(", ")"),
        Look::Unhealthy => ("[/", "/]"),
        Look::Errored => ("[/", "\\]"),
        Look::Restarting => ("{{", "}}"),
        Look::Deactivating | Look::Stopped => ("[", "]"),
        Look::Held => ("[[", "]]"),
    }
}

#[inline]
fn style(look: Look) -> String {
    let colours = match look.tone() {
        Tone::Good => "fill:#dafbe1,stroke:#1a7f37",
        Tone::Busy => "fill:#fff8c5,stroke:#9a6700",
        Tone::Bad => "fill:#ffebe9,stroke:#cf222e,stroke-width:2px",
        Tone::Off => "fill:#eff2f5,stroke:#59636e",
    };
    let dashes = match look {
        Look::Waiting => ",stroke-dasharray:2 3",
        Look::Activating | Look::Deactivating => ",stroke-dasharray:6 3",
        _ => "",
    };
    format!("{colours},color:#1f2328{dashes}")
}

#[cfg(test)]
mod tests {
    use crate::status::samples;

    #[test]
    #[rustfmt::skip]
    fn each_child_is_a_node_with_an_arrow_from_its_supervisor() {
        assert_eq!(
            samples::service().mermaid().lines().collect::<Vec<_>>(),
            [
                r##"flowchart LR;"##,
                r##"  n0("app<br>one_for_one 0/5 in 7m<br>active, up 2h15m"):::active;"##,
                r##"  n1("db<br>permanent<br>active, up 2h15m<br>#quot;pool 8/10#quot;"):::active;"##,
                r##"  n0 --> n1;"##,
                r##"  n2("ingest<br>rest_for_one 5/5 in 7m AT LIMIT<br>active, up 2h15m"):::active;"##,
                r##"  n0 --> n2;"##,
                r##"  n3("writer<br>permanent<br>active, up 38s<br>restarts=2<br>12/64 messages<br>last: panicked: index out of bounds"):::active;"##,
                r##"  n2 --> n3;"##,
                r##"  n4{{"mqtt<br>permanent<br>RESTARTING, retry in 4.2s (attempt 4)<br>restarts=3<br>last: activation failed: no route to ho…"}}:::restarting;"##,
                r##"  n2 --> n4;"##,
                r##"  n5[/"cache<br>permanent<br>active, up 1m<br>UNHEALTHY"/]:::unhealthy;"##,
                r##"  n0 --> n5;"##,
                r##"  n6[/"feed<br>permanent<br>ERRORED, for 0s<br>parked<br>last: failed: no such table"\]:::errored;"##,
                r##"  n0 --> n6;"##,
                r##"  n7["migrate<br>permanent<br>stopped, for 2h15m<br>last: ended normally"]:::stopped;"##,
                r##"  n0 --> n7;"##,
                r##"  n8(["http<br>permanent<br>activating, for 0s"]):::activating;"##,
                r##"  n0 --> n8;"##,
                r##"  n9(["search<br>permanent<br>discovered, for 0s<br>for feed, http"]):::waiting;"##,
                r##"  n0 --> n9;"##,
                r##"  n10["old<br>permanent<br>deactivating, for 0s"]:::deactivating;"##,
                r##"  n0 --> n10;"##,
                r##"  n11[["report<br>permanent<br>stopped, for 0s<br>2/5 in 1m<br>held by operator: disk swap"]]:::held;"##,
                r##"  n0 --> n11;"##,
                r##"  n9 -.-> n6;"##,
                r##"  n9 -.-> n8;"##,
                r##"  classDef waiting fill:#eff2f5,stroke:#59636e,color:#1f2328,stroke-dasharray:2 3;"##,
                r##"  classDef activating fill:#fff8c5,stroke:#9a6700,color:#1f2328,stroke-dasharray:6 3;"##,
                r##"  classDef active fill:#dafbe1,stroke:#1a7f37,color:#1f2328;"##,
                r##"  classDef unhealthy fill:#ffebe9,stroke:#cf222e,stroke-width:2px,color:#1f2328;"##,
                r##"  classDef errored fill:#ffebe9,stroke:#cf222e,stroke-width:2px,color:#1f2328;"##,
                r##"  classDef restarting fill:#fff8c5,stroke:#9a6700,color:#1f2328;"##,
                r##"  classDef deactivating fill:#fff8c5,stroke:#9a6700,color:#1f2328,stroke-dasharray:6 3;"##,
                r##"  classDef stopped fill:#eff2f5,stroke:#59636e,color:#1f2328;"##,
                r##"  classDef held fill:#eff2f5,stroke:#59636e,color:#1f2328;"##,
            ]
        );
    }

    #[test]
    #[rustfmt::skip]
    fn a_hostile_text_stays_in_its_label() {
        let chart = samples::hostile().mermaid();
        let line = chart.lines().nth(2).unwrap();

        assert_eq!(
            line,
            r##"  n1("#quot;#lt;b#gt;#amp;#92;<br>permanent<br>active, up 0s<br>#quot;#quot;#lt;script#gt;alert('#amp;')#lt;/script#gt;#92; [31m #37;#37;{…<br>last: panicked: #quot;#lt;script#gt;alert('#amp;')#lt;/sc…"):::active;"##,
        );
        assert!(chart.lines().all(|line| line.ends_with(';')));
    }

    #[test]
    fn a_deep_or_wide_tree_is_a_chart_too() {
        samples::in_a_small_stack(|| {
            let chart = samples::deep(1_000).mermaid();
            assert_eq!(chart.lines().count(), 1 + 1_001 + 1_000 + 9);
            assert!(chart.contains("\n  n999 --> n1000;\n"));
            let chart = samples::wide(10_000).mermaid();
            assert_eq!(chart.matches("\n  n0 --> n").count(), 10_000);
        });
    }
}
