//! Values of any type, read from nodes: all forms of serde, and all mistakes at once.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::merge::node;
use crate::config::Secret;
use crate::config::de::decode;

/// Returns the mistakes as `key: message`.
fn mistakes<T: DeserializeOwned>(json: &str) -> Vec<String> {
    let mistakes = decode::<T>(&node(json), "c").err().unwrap_or_default();
    mistakes.iter().map(|mistake| format!("{}: {}", mistake.key(), mistake.message())).collect()
}

fn value<T: DeserializeOwned>(json: &str) -> T {
    match decode(&node(json), "c") {
        Ok(decoded) => decoded.value,
        Err(mistakes) => panic!("{json}: {mistakes:?}"),
    }
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Shape {
    Point,
    Circle(u8),
    Line(u8, u8),
    Box { wide: u8, high: u8 },
}

#[derive(Debug, Deserialize, PartialEq)]
struct Meters(f64);

#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Text(String),
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Server {
    host: String,
    port: u16,
    #[serde(default)]
    ratio: Option<f32>,
    #[serde(default)]
    tls: bool,
}

#[test]
fn all_forms_of_values_are_read() {
    assert_eq!(value::<Shape>(r#""point""#), Shape::Point);
    assert_eq!(value::<Shape>(r#"{"point":{}}"#), Shape::Point);
    assert_eq!(value::<Shape>(r#"{"circle":3}"#), Shape::Circle(3));
    assert_eq!(value::<Shape>(r#"{"line":[1,2]}"#), Shape::Line(1, 2));
    assert_eq!(value::<Shape>(r#"{"box":{"wide":1,"high":2}}"#), Shape::Box { wide: 1, high: 2 });
    assert_eq!(value::<Meters>("2"), Meters(2.0));
    assert_eq!(value::<Vec<Either>>(r#"[1,"x"]"#), [Either::Number(1), Either::Text("x".into())]);
    assert_eq!(value::<(u8, String)>(r#"[1,"x"]"#), (1, "x".to_owned()));
    let ports = BTreeMap::from([(80_u16, Some('a')), (443, Some('b'))]);
    assert_eq!(value::<BTreeMap<u16, Option<char>>>(r#"{"80":"a","443":"b"}"#), ports);
    let by_shape = value::<BTreeMap<String, Option<Shape>>>(r#"{"a":"point"}"#);
    assert_eq!(by_shape, BTreeMap::from([("a".to_owned(), Some(Shape::Point))]));
    let json = serde_json::json!({ "a": [1, 2.5, "x", true] });
    assert_eq!(value::<serde_json::Value>(&json.to_string()), json);
}

#[test]
fn a_text_is_read_as_a_number_or_a_boolean_and_nothing_else_is_converted() {
    let json = r#"{"host":"a","port":"8080","ratio":" 0.5 ","tls":"true"}"#;
    let server = Server { host: "a".into(), port: 8080, ratio: Some(0.5), tls: true };
    assert_eq!(value::<Server>(json), server);
    assert_eq!(value::<f64>("\"2\""), 2.0);
    assert_eq!(value::<u64>("\"18446744073709551615\""), u64::MAX);
    assert_eq!(value::<i128>("\"-5\""), -5);
    let table = [
        (mistakes::<String>("5"), "c: invalid type: integer `5`, expected a string"),
        (
            mistakes::<u8>("\"\""),
            "c: invalid type: string \"\", expected a whole number from 0 to 255",
        ),
        (
            mistakes::<u8>("\"256\""),
            "c: invalid value: integer `256`, expected a whole number from 0 to 255",
        ),
        (
            mistakes::<u8>("-1"),
            "c: invalid value: integer `-1`, expected a whole number from 0 to 255",
        ),
        (mistakes::<f64>("\"inf\""), "c: invalid type: string \"inf\", expected a number"),
        (
            mistakes::<bool>("\"yes\""),
            "c: invalid type: string \"yes\", expected `true` or `false`",
        ),
        (
            mistakes::<BTreeMap<u8, u8>>(r#"{"300":1}"#),
            "c.300: invalid value: integer `300`, expected a whole number from 0 to 255",
        ),
        (mistakes::<bool>("1"), "c: invalid type: integer `1`, expected `true` or `false`"),
        (mistakes::<Vec<u8>>("1"), "c: invalid type: integer `1`, expected an array"),
        (mistakes::<(u8, u8)>("[1]"), "c: invalid length: 1, expected an array of 2"),
        (mistakes::<(u8, u8)>("[1,2,3]"), "c: invalid length: 3, expected an array of 2"),
        (mistakes::<Server>("[]"), "c: invalid type: array, expected a table"),
        (
            mistakes::<Shape>("5"),
            "c: invalid type: integer `5`, expected a word, or a table with one key",
        ),
        (mistakes::<Shape>("\"circle\""), "c: `circle` needs a value; write { circle = … }"),
        (
            mistakes::<Shape>("{\"point\":1}"),
            "c.point: `point` has no value; write \"point\" instead",
        ),
        (
            mistakes::<Shape>("\"crcle\""),
            "c: unknown word `crcle`; did you mean `circle`? write `point`, `circle`, `line` or `box`",
        ),
        (
            mistakes::<Shape>("{\"x\":1}"),
            "c.x: unknown word `x`; write `point`, `circle`, `line` or `box`",
        ),
        (mistakes::<Either>("[]"), "c: the value has none of the forms that are allowed here"),
    ];
    for (found, expected) in table {
        assert_eq!(found, [expected]);
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Feed {
    #[serde(rename = "servers")]
    _servers: Vec<Server>,
    #[serde(rename = "shape")]
    _shape: Shape,
    #[serde(rename = "pair")]
    _pair: (u8, u8),
    #[serde(rename = "limits")]
    _limits: BTreeMap<String, u8>,
}

#[test]
fn all_mistakes_of_a_value_are_found_at_once() {
    let json = r#"{
        "limits": { "a": 1, "b": -1, "c": "x" },
        "pair": ["p", "q"],
        "servers": [{"host":"a","port":"http"},{"host":1,"prot":2,"port":3},{"host":"c"},{"port":4}],
        "shape": { "box": { "wide": 300, "high": true } },
        "sever": 1
    }"#;
    let expected = [
        "c.limits.b: invalid value: integer `-1`, expected a whole number from 0 to 255",
        "c.limits.c: invalid type: string \"x\", expected a whole number from 0 to 255",
        "c.pair[0]: invalid type: string \"p\", expected a whole number from 0 to 255",
        "c.pair[1]: invalid type: string \"q\", expected a whole number from 0 to 255",
        "c.servers[0].port: invalid type: string \"http\", expected a whole number from 0 to 65535",
        "c.servers[1].host: invalid type: integer `1`, expected a string",
        "c.servers[1].prot: unknown key `prot`; did you mean `port`? write `host`, `port`, `ratio` or `tls`",
        "c.servers[2]: the key `port` is missing; add it",
        "c.servers[3]: the key `host` is missing; add it",
        "c.sever: unknown key `sever`; did you mean `servers`? write `servers`, `shape`, `pair` or `limits`",
        "c.shape.box.high: invalid type: boolean `true`, expected a whole number from 0 to 255",
        "c.shape.box.wide: invalid value: integer `300`, expected a whole number from 0 to 255",
    ];
    let mut found = mistakes::<Feed>(json);
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn there_are_at_most_a_hundred_mistakes_of_one_value() {
    let json = format!("[{}]", vec!["\"x\""; 1_000].join(","));
    assert_eq!(mistakes::<Vec<u8>>(&json).len(), 100);
}

#[test]
fn of_many_known_keys_the_nearest_are_listed() {
    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Many {
        a1: u8,
        b2: u8,
        c3: u8,
        d4: u8,
        e5: u8,
        f6: u8,
        g7: u8,
        h8: u8,
        i9: u8,
        j10: u8,
        k11: u8,
        l12: u8,
        m13: u8,
        n14: u8,
        o15: u8,
        p16: u8,
        q17: u8,
        r18: u8,
        s19: u8,
        t20: u8,
        timeout: u8,
    }
    let expected = "c.timeot: unknown key `timeot`; did you mean `timeout`? write `timeout`, `e5`, `i9`, \
                    `m13` or `t20`, or one of 16 others";
    assert_eq!(mistakes::<Many>(r#"{"timeot":1}"#), [expected]);
}

#[test]
fn a_panic_is_a_mistake_at_the_value_that_was_read() {
    struct Bomb;
    impl<'de> Deserialize<'de> for Bomb {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            assert_ne!(text, "boom", "no bombs");
            panic!("never {text}");
        }
    }
    #[derive(Deserialize)]
    struct Bombs {
        #[serde(rename = "a")]
        _a: Option<Bomb>,
        #[serde(rename = "b")]
        _b: Option<Vec<u8>>,
    }
    let found = mistakes::<Bombs>(r#"{"a":"x","b":[1,"y"]}"#);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("c.a: reading it panicked: never x"), "{found:?}");
    assert!(found[1].starts_with("c.b[1]: invalid type"), "{found:?}");
}

#[derive(Deserialize)]
struct Login {
    #[serde(rename = "user")]
    _user: String,
    #[serde(rename = "password")]
    _password: Secret<String>,
}

#[test]
fn the_keys_of_secrets_are_returned() {
    let decoded = decode::<BTreeMap<String, Login>>(
        &node(r#"{"a b":{"user":"u","password":"p"},"z":{"user":"u","password":"q"}}"#),
        "c",
    );
    let mut secrets = decoded.unwrap().secrets;
    secrets.sort();
    assert_eq!(secrets, ["\"a b\".password", "z.password"]);

    // Behind `flatten`, the place of the secret isn't known, so the whole table is one.
    #[derive(Deserialize)]
    struct Outer {
        #[serde(flatten)]
        _login: Login,
    }
    let decoded = decode::<Outer>(&node(r#"{"user":"u","password":"p"}"#), "c");
    assert_eq!(decoded.unwrap().secrets, [""]);
}

#[test]
fn no_mistake_shows_a_secret() {
    #[derive(Deserialize)]
    struct Keys {
        #[serde(rename = "pin")]
        _pin: Secret<u16>,
        #[serde(rename = "shape")]
        _shape: Secret<Shape>,
        #[serde(rename = "inner")]
        _inner: Checked,
    }
    #[derive(Deserialize)]
    #[serde(try_from = "Login")]
    struct Checked;
    impl TryFrom<Login> for Checked {
        type Error = String;
        fn try_from(login: Login) -> Result<Self, String> {
            Err(format!("{} is too short", login._password.expose()))
        }
    }
    let json = r#"{"pin":"hunter1","shape":"hunter2","inner":{"user":"u","password":"hunter3"}}"#;
    let mut found = mistakes::<Keys>(json);
    found.sort();
    let expected = [
        "c.inner: [redacted] is too short",
        "c.pin: invalid type of a secret, expected a whole number from 0 to 65535",
        "c.shape: the value can't be read; the reason isn't shown, because the value is a secret",
    ];
    assert_eq!(found, expected);
}
