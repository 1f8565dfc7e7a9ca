//! The parser behind `URL` and `URLSearchParams`; the classes themselves are in guest/url.js.
//!
//! Strings arrive well-formed: the guest side has replaced lone surrogates.

use rquickjs::{Ctx, Object, function::Func};
use url::{Url, form_urlencoded, quirks};

/// Adds `parseUrl`, `changeUrl`, `parseQuery` and `formatQuery` to `native`.
pub(super) fn install<'js>(_ctx: &Ctx<'js>, native: &Object<'js>) -> rquickjs::Result<()> {
    native.set("parseUrl", Func::from(parse_url))?;
    native.set("changeUrl", Func::from(change_url))?;
    native.set("parseQuery", Func::from(parse_query))?;
    native.set("formatQuery", Func::from(format_query))
}

/// The parts of an URL in the order guest/url.js expects them; none when it is not valid.
fn parse_url(input: String, base: Option<String>) -> Option<Vec<String>> {
    let url = match base {
        Some(base) => Url::parse(&base).ok()?.join(&input).ok()?,
        None => Url::parse(&input).ok()?,
    };
    Some(parts(&url))
}

/// The parts after one was assigned to; none when the new value is refused.
fn change_url(href: String, part: String, value: String) -> Option<Vec<String>> {
    let mut url = Url::parse(&href).ok()?;
    let accepted = match part.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Err(()),
    };
    accepted.ok().map(|()| parts(&url))
}

fn parts(url: &Url) -> Vec<String> {
    let origin = quirks::origin(url);
    let rest = [
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ];
    let mut all = vec![quirks::href(url).to_owned(), origin];
    all.extend(rest.map(str::to_owned));
    all
}

/// Names and values in turn.
fn parse_query(text: String) -> Vec<String> {
    let pairs = form_urlencoded::parse(text.as_bytes());
    pairs.flat_map(|(name, value)| [name.into_owned(), value.into_owned()]).collect()
}

/// The reverse of [`parse_query`].
fn format_query(names_and_values: Vec<String>) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    for pair in names_and_values.chunks_exact(2) {
        if let [name, value] = pair {
            text.append_pair(name, value);
        }
    }
    text.finish()
}
