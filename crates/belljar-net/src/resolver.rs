//! Finds the addresses of names.

use std::{borrow::Cow, fmt::Debug, fs, future::Future, io, net::IpAddr, pin::Pin};

use crate::host::DomainName;

const HOSTS: &str = "/etc/hosts";

/// Finds the addresses of a name.
pub trait Resolver: Debug + Send + Sync {
    /// The addresses, in the order in which they are to be tried.
    fn resolve<'a>(
        &'a self,
        name: &'a DomainName,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;
}

/// The resolver of this machine, as every other program here uses it: `/etc/hosts`, split DNS and the
/// operator's own servers hold for cells, too. Only its search domains do not: with them, it would look for
/// names that no rule allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(
        &'a self,
        name: &'a DomainName,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        Box::pin(async move {
            // Few lines, and the resolver reads them each time, too.
            let hosts = fs::read(HOSTS).unwrap_or_default();
            let asked = name_to_ask(name, &String::from_utf8_lossy(&hosts));
            let found = tokio::net::lookup_host((&*asked, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The name as the resolver is asked for it. With a dot at its end, it has no search domain added. The
/// resolver does not compare that dot with `/etc/hosts`, so a name that is there is asked for without it.
fn name_to_ask<'a>(name: &'a DomainName, hosts: &str) -> Cow<'a, str> {
    let names_it = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_ascii_whitespace().skip(1).any(|word| word.eq_ignore_ascii_case(name.as_str()))
    };
    match hosts.lines().any(names_it) {
        true => Cow::Borrowed(name.as_str()),
        false => Cow::Owned(format!("{name}.")),
    }
}

#[cfg(test)]
mod tests;
