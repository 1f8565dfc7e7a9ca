//! `belljar workflow fork` and `delete`.

use std::{io, io::Write as _, process::ExitCode};

use anyhow::bail;
use belljar_contract::exact_json;
use belljar_project::{Project, check_workflow_id, new_workflow_id, now_ms};
use belljar_workflow::{WorkflowError, WorkflowStoreError};

use super::{find_workflow, host::WorkflowContext, stored_workflows};
use crate::cli::{
    arguments::{WorkflowDeleteArguments, WorkflowForkArguments},
    print_json,
};

/// Runs `belljar workflow fork`.
pub(super) async fn fork(
    arguments: &WorkflowForkArguments,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let workflows = stored_workflows(project)?;
    let id = find_workflow(&workflows, &arguments.id).await?;
    let new_id = arguments.new_id.clone().unwrap_or_else(new_workflow_id);
    check_workflow_id(&new_id)?;
    let forked = workflows.fork(&id, arguments.at, &new_id, now_ms(), None).await;
    let at = match forked {
        Ok(at) => at,
        Err(WorkflowError::Store(
            error @ (WorkflowStoreError::Conflict(_) | WorkflowStoreError::NoCheckpoint { .. }),
        )) => bail!("{error}; its checkpoints: belljar workflow show {id}"),
        Err(error) => return Err(error.into()),
    };
    if arguments.json {
        print_json(&exact_json!({ "id": new_id, "parent": id, "checkpoint": at }))?;
    } else {
        writeln!(io::stdout(), "{new_id}")?;
        writeln!(
            io::stderr(),
            "copied {id} at checkpoint {at}; to start it: belljar workflow resume {new_id}"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `belljar workflow delete`.
pub(super) async fn delete(
    arguments: &WorkflowDeleteArguments,
    context: WorkflowContext<'_>,
) -> anyhow::Result<ExitCode> {
    let workflows = stored_workflows(context.project)?;
    let store = workflows.store();
    for given in &arguments.ids {
        let id = find_workflow(&workflows, given).await?;
        match belljar_project::forget_workflow(store, &id, &context.locations.scratch()).await {
            Ok(()) => writeln!(io::stderr(), "deleted {id}")?,
            Err(WorkflowStoreError::Held { .. }) => bail!(
                "workflow {id} has not ended, or a process drives it: belljar workflow command \
                 {id} abort, then belljar workflow resume {id}"
            ),
            Err(error) => return Err(error.into()),
        }
    }
    // Deleted values must not stay in the log; this fails if another process is reading it.
    let _ = store.project_store().empty_log().await;
    Ok(ExitCode::SUCCESS)
}
