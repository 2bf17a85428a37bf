//! Actions: keys in, dialogs and requests out.

use super::*;

#[test]
fn an_action_is_sent_once_it_is_confirmed_with_its_reason() {
    let mut fixture = Fixture::live();
    _ = fixture.effects();
    fixture.keys("jjr");
    insta::assert_snapshot!(fixture.screen(80, 18));
    fixture.keys("slow");
    fixture.press(KeyCode::Enter);
    let act = Act {
        action: "restart",
        path: "app/ingest".into(),
        reason: Some("slow".into()),
        by: Some("alice".into()),
        confirm: None,
    };
    fixture.app.effects.retain(|effect| matches!(effect, Effect::Ask(Query::Act(_))));
    assert_eq!(fixture.app.effects, [Effect::Ask(Query::Act(act.clone()))]);
    assert_eq!(fixture.footer(), "restart app/ingest …");
    let acted = Answer::Acted(Acted { text: "restarted app/ingest".into() });
    fixture.send(Message::Answer(Query::Act(act.clone()), Ok(acted)));
    assert_eq!(fixture.footer(), "restarted app/ingest");
    fixture.send(Message::Answer(Query::Act(act), Err("no".into())));
    assert_eq!(fixture.footer(), "no");
    fixture.pass(10_000);
    assert!(fixture.footer().starts_with("? help"));
}

#[test]
fn each_key_of_an_action_asks_for_its_own_one() {
    for (keys, action) in [
        ("jr", "restart"),
        ("js", "stop"),
        ("jjjjn", "resume"),
        ("jK", "kill"),
        ("jh", "hold"),
        ("jc", "reset"),
        ("Gh", "release"),
    ] {
        let mut fixture = Fixture::live();
        fixture.keys(keys);
        let Mode::Confirm(dialog) = &fixture.app.mode else { panic!("{keys} opens no dialog") };
        assert_eq!(dialog.act.action, action);
        fixture.press(KeyCode::Esc);
        assert!(
            fixture.app.mode == Mode::Browse
                && !fixture.app.effects.iter().any(|it| matches!(it, Effect::Ask(Query::Act(_))))
        );
    }
}

#[test]
fn the_whole_tree_is_stopped_only_by_its_name() {
    let mut fixture = Fixture::live();
    fixture.keys("sdb");
    fixture.press(KeyCode::Enter);
    assert_eq!(fixture.footer(), "nothing was stopped: the name is `app`");
    fixture.keys("sapp");
    fixture.press(KeyCode::Enter);
    let act = Act {
        action: "stop_tree",
        path: "app".into(),
        reason: None,
        by: Some("alice".into()),
        confirm: Some("app".into()),
    };
    assert!(fixture.app.effects.contains(&Effect::Ask(Query::Act(act))));
}

#[test]
fn without_actions_or_a_token_the_view_says_what_to_do() {
    let mut fixture = Fixture::live();
    fixture.app.info.actions = false;
    fixture.keys("r");
    assert!(fixture.footer().starts_with("actions are off; let the program allow them"));
    assert_eq!(fixture.app.mode, Mode::Browse);

    let mut fixture = Fixture::live();
    fixture.app.has_token = false;
    fixture.keys("r");
    assert!(fixture.footer().starts_with("actions need the token"));
}

#[test]
fn an_action_that_does_not_apply_opens_no_dialog() {
    for (keys, text) in [
        ("r", "can't restart app: the root has no supervisor that could do it"),
        ("jn", "can't resume app/db: it runs already"),
        ("Gr", "can't restart app/http: it is held; release it first"),
        ("Gs", "can't stop app/http: it is stopped already"),
        ("jjjjK", "can't kill app/ingest/mqtt: it doesn't run, so there is no task to abort"),
    ] {
        let mut fixture = Fixture::live();
        fixture.keys(keys);
        assert_eq!((fixture.footer(), &fixture.app.mode), (text.to_owned(), &Mode::Browse));
    }
}

#[test]
fn a_kill_needs_a_reason() {
    let mut fixture = Fixture::live();
    fixture.keys("jK");
    insta::assert_snapshot!("kill", fixture.screen(80, 24));
    fixture.press(KeyCode::Enter);
    assert_eq!(fixture.footer(), "nothing was killed: write the reason, and press enter again");
    fixture.keys("hung");
    fixture.press(KeyCode::Enter);
    let act = Act {
        action: "kill",
        path: "app/db".into(),
        reason: Some("hung".into()),
        by: Some("alice".into()),
        confirm: None,
    };
    assert!(fixture.app.effects.contains(&Effect::Ask(Query::Act(act))));
}
