//! The table of grants, and the types that are made of it.
//!
//! A row that has `given` is a field of [`Grants`], one that has `client` a field of [`GrantsRequest`], one
//! that has `task` a field of [`TaskGrants`]; each names the type of that field. A row without one of them
//! cannot be given, or asked for, there. A row that has `operator` is a key under `[grants]`.
//!
//! Order matters in one place: the text of a task's grants has them in this order, and the hash of that
//! text names the run of the task. Rows that were there when workflows were first stored are written
//! even if the task does not ask for them (`unasked`); a new row has `unasked: None`.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Access, EngineAbility, GrantFlag, GrantKind, OperatorKey, VariablesRequest,
    fields::{AskedField, GivenField},
};
use crate::ErrorCode;

/// The second of two. The first is there because a repetition has to name what it goes over.
macro_rules! second {
    ($first:ty, $second:expr) => {
        $second
    };
}

macro_rules! grant_table {
    ($(
        #[doc = $doc:literal]
        $grant:ident {
            $field:ident: $kind:ident, also: $also:expr, needs: $needs:expr, flag: $flag:expr,
            $(operator: $operator:expr,)?
            $(given: $given:ty,)? $(client: $client:ty,)? $(task: $task:ty, unasked: $unasked:expr,)?
        }
    )*) => {
        /// The access that a run is given.
        ///
        /// ```
        /// use belljar_contract::{Grants, RunRequest};
        ///
        /// let mut request = RunRequest::typescript("return Deno.readTextFileSync('/srv/data/a.csv')");
        /// request.grants = Grants { read: vec!["/srv/data".into()], ..Grants::default() };
        /// assert!(request.has_host_files());
        /// ```
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Grants {
            $($(#[doc = $doc] pub $field: $given,)?)*
        }

        impl Grants {
            pub(super) fn fields(&self) -> Vec<(Grant, &dyn GivenField)> {
                vec![$($((Grant::$grant, second!($given, &self.$field as &dyn GivenField)),)?)*]
            }

            pub(super) fn fields_mut(&mut self) -> Vec<(Grant, &mut dyn GivenField)> {
                vec![$($((Grant::$grant, second!($given, &mut self.$field as &mut dyn GivenField)),)?)*]
            }
        }

        /// The access that a client requests. A request beyond the operator's rules is refused.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        #[schemars(rename = "Grants")]
        pub struct GrantsRequest {
            $($(#[doc = $doc] pub $field: $client,)?)*
        }

        impl GrantsRequest {
            pub(super) fn fields(&self) -> Vec<(Grant, &dyn AskedField)> {
                vec![$($((Grant::$grant, second!($client, &self.$field as &dyn AskedField)),)?)*]
            }

            pub(super) fn fields_mut(&mut self) -> Vec<(Grant, &mut dyn AskedField)> {
                vec![$($((Grant::$grant, second!($client, &mut self.$field as &mut dyn AskedField)),)?)*]
            }
        }

        /// The grants that the code of a task in a workflow asks for.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct TaskGrants {
            $($(#[doc = $doc] pub $field: $task,)?)*
        }

        impl TaskGrants {
            pub(super) fn fields(&self) -> Vec<(Grant, &dyn AskedField)> {
                vec![$($((Grant::$grant, second!($task, &self.$field as &dyn AskedField)),)?)*]
            }

            pub(super) fn fields_mut(&mut self) -> Vec<(Grant, &mut dyn AskedField)> {
                vec![$($((Grant::$grant, second!($task, &mut self.$field as &mut dyn AskedField)),)?)*]
            }
        }

        /// One thing that a run can be granted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Grant {
            $(#[doc = $doc] $grant,)*
        }

        impl Grant {
            /// Every grant there is.
            pub const ALL: &'static [Self] = &[$(Self::$grant,)*];
            /// The grants that a client may ask for.
            pub const OF_CLIENTS: &'static [Self] = &[$($(second!($client, Self::$grant),)?)*];
            /// The grants that a task of a workflow may ask for.
            pub const OF_TASKS: &'static [Self] = &[$($(second!($task, Self::$grant),)?)*];

            /// Its name in requests, workflow files and records.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$grant => stringify!($field),)* }
            }

            /// Other names that requests and workflow files may use for it.
            pub const fn also(self) -> &'static [&'static str] {
                match self { $(Self::$grant => $also,)* }
            }

            /// A sentence about the grant.
            pub fn about(self) -> &'static str {
                match self { $(Self::$grant => $doc.trim(),)* }
            }

            /// The kind of thing it gives.
            pub const fn kind(self) -> GrantKind {
                match self { $(Self::$grant => GrantKind::$kind,)* }
            }

            /// The ability that an engine needs for its code to use the grant.
            pub const fn needs(self) -> Option<EngineAbility> {
                match self { $(Self::$grant => $needs,)* }
            }

            /// Its flag on the command line, if it has one.
            pub const fn flag(self) -> Option<GrantFlag> {
                match self { $(Self::$grant => $flag,)* }
            }

            /// The operator's key for it, if it has one: under `[grants]`, and as a flag of `serve`.
            pub fn operator(self) -> Option<OperatorKey> {
                let rows: &[(Self, OperatorKey)] = &[$($((Self::$grant, $operator),)?)*];
                rows.iter().find(|(grant, _)| *grant == self).map(|(_, key)| *key)
            }

            /// Its JSON in a task that does not ask for it; `None` leaves it out.
            pub(super) fn unasked(self) -> Option<&'static str> {
                let rows: &[(Self, Option<&str>)] = &[$($((Self::$grant, $unasked),)?)*];
                rows.iter().find(|(grant, _)| *grant == self).and_then(|(_, json)| *json)
            }
        }
    };
}

grant_table! {
    /// The only tools it may call (`server__tool`, globs); absent means what policy allows.
    Tools {
        tools: Tools, also: &[], needs: None, flag: None,
        client: Option<Vec<String>>,
        task: Option<Vec<String>>, unasked: Some("null"),
    }
    /// Files and directories of the host to read, at their own paths.
    Read {
        read: Paths, also: &["allowed_read_paths"], needs: None,
        flag: Some(GrantFlag {
            name: "read", value_name: "PATH",
            help: "File or directory the code may read, at the same path",
            workflow_help: Some("File or directory that the file may let code read"),
            serve_help: Some("File or directory that clients may let code read"),
        }),
        operator: OperatorKey { noun: "reading", code: ErrorCode::PermissionFile, is_open: false },
        given: Vec<PathBuf>,
        client: Access,
        task: Access, unasked: Some("[]"),
    }
    /// Files and directories of the host to change, at their own paths.
    Write {
        write: Paths, also: &["allow_write", "allowed_write_paths"], needs: None,
        flag: Some(GrantFlag {
            name: "write", value_name: "PATH",
            help: "File or directory the code may change directly, at the same path",
            workflow_help: None,
            serve_help: Some("File or directory that clients may let code change"),
        }),
        operator: OperatorKey { noun: "writing", code: ErrorCode::PermissionFile, is_open: false },
        given: Vec<PathBuf>,
        client: Access,
        task: Access, unasked: Some("false"),
    }
    /// Hosts to reach, `host` or `host:port`.
    Net {
        net: Hosts, also: &["allow_network"], needs: None,
        flag: Some(GrantFlag {
            name: "net", value_name: "HOST[:PORT]",
            help: "Host the code may reach: a name, *.NAME or an address",
            workflow_help: Some("Host that the file may let code reach: a name, *.NAME or an address"),
            serve_help: Some("Host that clients may let code reach: a name, *.NAME or an address"),
        }),
        given: Vec<String>,
        client: Access,
        task: Access, unasked: None,
    }
    /// Environment variables, with values.
    Env {
        env: Variables, also: &[], needs: None,
        flag: Some(GrantFlag {
            name: "env", value_name: "NAME[=VALUE]",
            help: "Environment variable for the code; without VALUE, its current value",
            workflow_help: Some(
                "Environment variable that the file may give to code; without VALUE, its current value",
            ),
            serve_help: Some(
                "Environment variable that clients may give to code by name; without VALUE, its current value",
            ),
        }),
        operator: OperatorKey { noun: "the environment variable", code: ErrorCode::PermissionHost, is_open: false },
        given: BTreeMap<String, String>,
        client: VariablesRequest,
        task: Vec<String>, unasked: Some("[]"),
    }
    /// Python modules and builtins that restricted mode would refuse.
    Modules {
        modules: Names, also: &["allowed_modules"], needs: Some(EngineAbility::ImportsModules),
        flag: Some(GrantFlag {
            name: "module", value_name: "NAME",
            help: "Python module or builtin that restricted mode refuses, e.g. subprocess, eval",
            workflow_help: None,
            serve_help: Some("Python module that clients may ask for; without the flag, any module"),
        }),
        operator: OperatorKey { noun: "the module", code: ErrorCode::PermissionModule, is_open: true },
        given: Vec<String>,
        client: Vec<String>,
        task: Option<Vec<String>>, unasked: Some("null"),
    }
    /// Commands beyond the default set.
    Commands {
        commands: Names, also: &[], needs: Some(EngineAbility::StartsPrograms),
        flag: Some(GrantFlag {
            name: "command", value_name: "NAME",
            help: "Command beyond the default set, e.g. rm, git",
            workflow_help: None,
            serve_help: Some("Command that clients may ask for, e.g. git"),
        }),
        operator: OperatorKey { noun: "the command", code: ErrorCode::PermissionCommand, is_open: false },
        given: Vec<String>,
        client: Vec<String>,
        task: Vec<String>, unasked: Some("[]"),
    }
    /// Nothing is refused at the level of the language; the jail stays as it is.
    Permissive {
        permissive: Switch, also: &[], needs: None,
        flag: Some(GrantFlag {
            name: "permissive", value_name: "",
            help: "Lift Python's restricted mode; the sandbox itself stays",
            workflow_help: None,
            serve_help: None,
        }),
        given: bool,
        task: bool, unasked: Some("false"),
    }
}
