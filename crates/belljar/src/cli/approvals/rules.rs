//! `belljar approvals rules`: what the user approved for good in a project.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::bail;
use belljar_project::{Project, now_ms};

use crate::cli::{
    arguments::{RulesArguments, RulesCommand},
    print_json,
    terminal::{
        elapsed::ago,
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// Lists or removes rules.
pub(super) fn rules(arguments: &RulesArguments, project: &Project) -> anyhow::Result<ExitCode> {
    let Some(kept) = project.kept_rules() else {
        bail!("there is no home directory to keep rules in: set HOME or XDG_STATE_HOME");
    };
    if let Some(RulesCommand::Rm { ids }) = &arguments.command {
        let mut failed = false;
        for id in ids {
            match kept.remove(id)? {
                Some(rule) => writeln!(io::stdout(), "removed {}", visible(&rule.to_string()))?,
                None => {
                    failed = true;
                    writeln!(io::stderr(), "there is no rule {} in this project", visible(id))?;
                }
            }
        }
        return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let file = kept.load()?;
    if arguments.json {
        print_json(&file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = TextStyle::of_stdout();
    for rule in &file.rules {
        let (id, at) = (style.paint(TextRole::Strong, &rule.id), ago(rule.created_ms, now_ms()));
        let text = visible(&rule.to_string()).into_owned();
        writeln!(io::stdout(), "{id}  {text}\n  approved {at} by {}", visible(&rule.by))?;
    }
    for one in &file.accepted {
        writeln!(
            io::stdout(),
            "server {} is accepted with its configuration of that time",
            visible(&one.server)
        )?;
    }
    if file.rules.is_empty() && file.accepted.is_empty() {
        writeln!(io::stderr(), "this project has no permanent rules")?;
    }
    Ok(ExitCode::SUCCESS)
}
