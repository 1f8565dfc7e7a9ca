//! Names of runs, sessions, checkpoints and approvals, each a type of its own.
//!
//! An id that came from a client is not checked here: it is a key to look something up by, never a
//! path or a part of a command.

use std::{borrow::Borrow, fmt, ops::Deref};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hex;

/// The longest id of a workflow, or of a command to one, in bytes.
pub const MAX_WORKFLOW_ID: usize = 100;

/// Whether a text can be the id of a workflow, or of a command to one: ids are chosen by people and clients, and
/// become parts of paths and command lines.
pub fn is_workflow_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=MAX_WORKFLOW_ID).contains(&id.len())
        && id.bytes().all(is_plain)
        && !id.starts_with(['.', '-'])
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(String);

        impl $name {
            /// The first characters of every id of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// A new id from bytes that the caller drew at random.
            pub fn from_random(bytes: [u8; 10]) -> Self {
                Self(format!("{}{}", $prefix, hex::encode(&bytes)))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    )*};
}

ids! {
    /// The name of a run, `run_…`; a task of a workflow names its run after itself.
    RunId, "run_";
    /// The name of a session, `ses_…`.
    SessionId, "ses_";
    /// The name of a checkpoint of a session, `chk_…`.
    CheckpointId, "chk_";
    /// The name of a question that a person decides, `apr_…`.
    ApprovalId, "apr_";
}
