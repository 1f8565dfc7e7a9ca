//! Access to the HTTP server: checks the Host, the Origin and the token.
//!
//! A web page can send requests to loopback addresses, also under a name of its own (DNS
//! rebinding). Its Host and Origin headers give it away, and it has no token.

#[cfg(test)]
mod tests;

use axum::{
    http::{HeaderMap, StatusCode, Uri, header, uri::Authority},
    response::{IntoResponse, Response},
};

use crate::{api::error::ApiError, token::BearerToken};

/// Names by which this machine reaches its own servers.
const LOOPBACK: &[&str] = &["localhost", "127.0.0.1", "[::1]"];

/// How clients prove that they may use the server.
#[derive(Debug, Clone)]
pub enum Auth {
    /// They send this token as `Authorization: Bearer`.
    Token(BearerToken),
    /// They need not. Refused on addresses that other machines can reach.
    Open,
}

/// Hosts and origins that are allowed besides those of the loopback interface.
#[derive(Debug, Clone, Default)]
pub struct AllowedSources {
    /// Host names, with or without a port.
    pub hosts: Vec<String>,
    /// Origins, as browsers send them: `https://app.example.com`.
    pub origins: Vec<String>,
}

/// Why the guard refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessDenied {
    Host,
    Origin,
    NoToken,
    WrongToken,
}

#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) auth: Auth,
    pub(crate) allowed: AllowedSources,
}

impl Guard {
    /// Checks the Host and the Origin, without the token.
    pub(crate) fn check_source(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessDenied> {
        // There must be one Host header, and the request line must agree with it: a proxy that
        // reads only one of the two must not see another host than the one checked here.
        let mut hosts = headers.get_all(header::HOST).iter();
        let host =
            hosts.next().map(|host| host.to_str().map_err(|_| AccessDenied::Host)).transpose()?;
        let named = [host, uri.authority().map(Authority::as_str)];
        let are_known = named.iter().flatten().all(|host| self.is_known_host(host));
        if hosts.next().is_some() || named == [None, None] || !are_known {
            return Err(AccessDenied::Host);
        }
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().map_err(|_| AccessDenied::Origin)?;
            if !self.is_known_origin(origin) {
                return Err(AccessDenied::Origin);
            }
        }
        Ok(())
    }

    /// Checks that the request brings the token.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), AccessDenied> {
        let Auth::Token(token) = &self.auth else { return Ok(()) };
        let given = headers.get(header::AUTHORIZATION).ok_or(AccessDenied::NoToken)?;
        let given = given.to_str().map_err(|_| AccessDenied::WrongToken)?;
        let (scheme, guess) = given.split_once(' ').ok_or(AccessDenied::WrongToken)?;
        if scheme.eq_ignore_ascii_case("bearer") && token.matches(guess.trim()) {
            Ok(())
        } else {
            Err(AccessDenied::WrongToken)
        }
    }

    fn is_known_host(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host();
        let loopback = LOOPBACK.iter().any(|known| name.eq_ignore_ascii_case(known));
        let same =
            |known: &String| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name);
        !host.contains('@') && (loopback || self.allowed.hosts.iter().any(same))
    }

    fn is_known_origin(&self, origin: &str) -> bool {
        if self.allowed.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.and_then(|host| host.parse::<Authority>().ok()).is_some_and(|host| {
            !origin.contains('@')
                && LOOPBACK.iter().any(|known| host.host().eq_ignore_ascii_case(known))
        })
    }
}

impl IntoResponse for AccessDenied {
    fn into_response(self) -> Response {
        let (status, code, message) = match self {
            Self::Host => (
                StatusCode::FORBIDDEN,
                "auth.host",
                "the Host header names a host that is not allowed",
            ),
            Self::Origin => (
                StatusCode::FORBIDDEN,
                "auth.origin",
                "the Origin header names an origin that is not allowed",
            ),
            Self::NoToken => {
                (StatusCode::UNAUTHORIZED, "auth.no_token", "the request has no token")
            }
            Self::WrongToken => {
                (StatusCode::UNAUTHORIZED, "auth.wrong_token", "the token is wrong")
            }
        };
        let hint = match self {
            Self::Host => "allow it with `belljar serve --allow-host`",
            Self::Origin => "allow it with `belljar serve --allow-origin`",
            Self::NoToken | Self::WrongToken => {
                "send `Authorization: Bearer TOKEN`; the token is in .belljar/token"
            }
        };
        ApiError::new(status, code, message).with_hint(hint).into_response()
    }
}
