//! Expands `${VAR}` and `${VAR:-default}`, as other clients of the protocol do.

use std::collections::BTreeMap;

use super::ServerConfigError;

/// Expands variables in the configuration of one server.
pub(super) struct Expander<'a> {
    pub(super) server: &'a str,
    pub(super) variables: &'a BTreeMap<String, String>,
}

impl Expander<'_> {
    /// Expands the variables of a text. Values are not expanded again.
    pub(super) fn expand(&self, key: &str, text: &str) -> Result<String, ServerConfigError> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((inside, after)) = after.split_once('}') else {
                // Never closed, so it is text.
                out.push_str("${");
                rest = after;
                continue;
            };
            out.push_str(self.value(key, inside)?);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Expands the variables in the values of a table.
    pub(super) fn expand_table(
        &self,
        key: &str,
        table: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, ServerConfigError> {
        let expand = |(name, value): (&String, &String)| {
            Ok((name.clone(), self.expand(&format!("{key}.{name}"), value)?))
        };
        table.iter().map(expand).collect()
    }

    fn value<'a>(&'a self, key: &str, inside: &'a str) -> Result<&'a str, ServerConfigError> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        // VS Code's spelling of the same.
        let name = name.strip_prefix("env:").unwrap_or(name);
        if !is_variable(name) {
            return Err(ServerConfigError::NotAVariable {
                server: self.server.to_owned(),
                key: key.to_owned(),
                text: inside.to_owned(),
            });
        }
        // As in a shell, a variable without anything in it counts as unset where there is a default.
        let set = self.variables.get(name).map(String::as_str);
        let found = set.filter(|value| default.is_none() || !value.is_empty()).or(default);
        found.ok_or_else(|| ServerConfigError::Unset {
            server: self.server.to_owned(),
            key: key.to_owned(),
            variable: name.to_owned(),
        })
    }
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
