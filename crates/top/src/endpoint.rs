//! Where the console is: address and token.
//!
//! Parsing opens nothing.

use std::fmt;

/// The port that `Application::console` has in its examples.
const PORT: u16 = 7007;

/// The address of a console, and the token for actions.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Host and port, as in a URL and in the header `Host`: `127.0.0.1:7007`, `[::1]:80`.
    pub(crate) authority: String,
    pub(crate) token: Option<String>,
}

impl Endpoint {
    /// Parses `http://127.0.0.1:7007/#token=…`. The scheme and the port may be left out.
    ///
    /// # Errors
    ///
    /// Returns a message that says what to write instead.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let example = "write it like http://127.0.0.1:7007";
        if url.starts_with("https://") {
            return Err(format!(
                "`{url}`: the console speaks plain HTTP; use http://, through a tunnel if it is on another machine: \
                 ssh -L 7007:127.0.0.1:7007 HOST"
            ));
        }
        let rest = url.strip_prefix("http://").unwrap_or(url);
        if rest.contains("://") {
            return Err(format!("`{url}` is not an HTTP address; {example}"));
        }
        let (place, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let authority = place.strip_suffix('/').unwrap_or(place);
        let is_clean = authority.chars().all(|c| c.is_ascii_graphic() && !"/?@\"\\".contains(c));
        if authority.is_empty() || !is_clean {
            return Err(format!("`{url}` is not the address of a console; {example}"));
        }
        let after_host = authority.rsplit_once(']').map_or(authority, |(_, port)| port);
        let authority = match after_host.split_once(':') {
            None => format!("{authority}:{PORT}"),
            Some((_, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => {
                authority.to_owned()
            }
            Some((_, port)) => return Err(format!("`{url}`: `{port}` is not a port; {example}")),
        };
        let token = fragment.split('&').find_map(|part| part.strip_prefix("token="));
        Ok(Self { authority, token: token.filter(|it| !it.is_empty()).map(str::to_owned) })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// Doesn't show the token.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> (String, Option<String>) {
        let endpoint = Endpoint::parse(url).unwrap();
        (endpoint.authority, endpoint.token)
    }

    #[test]
    fn an_address_may_lack_scheme_and_port_and_carry_a_token() {
        assert_eq!(parsed("http://127.0.0.1:7007"), ("127.0.0.1:7007".into(), None));
        assert_eq!(parsed("localhost"), ("localhost:7007".into(), None));
        assert_eq!(parsed("[::1]"), ("[::1]:7007".into(), None));
        assert_eq!(parsed("http://[::1]:80/#token=a1"), ("[::1]:80".into(), Some("a1".into())));
        assert_eq!(parsed("http://h:1/#x=y&token=a=b"), ("h:1".into(), Some("a=b".into())));
        assert_eq!(parsed("http://h:1#token="), ("h:1".into(), None));
    }

    #[test]
    fn a_wrong_address_is_explained() {
        for (url, part) in [
            ("https://h", "plain HTTP"),
            ("ftp://h", "not an HTTP address"),
            ("http://", "not the address"),
            ("http://h:1/tree", "not the address"),
            ("h:port", "`port` is not a port"),
            ("h:0", "`0` is not a port"),
            ("h\r\nX: y", "not the address"),
        ] {
            let error = Endpoint::parse(url).unwrap_err();
            assert!(error.contains(part), "{url}: {error}");
        }
    }

    #[test]
    fn the_token_is_never_shown() {
        let endpoint = Endpoint::parse("h:1#token=secret").unwrap();
        assert_eq!(format!("{endpoint} {endpoint:?}"), "http://h:1 http://h:1");
    }
}
