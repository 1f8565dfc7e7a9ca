//! Workflow files: reading, checking, and printing faults with their lines.

use std::{fs, io, io::Write as _, path::Path, process::ExitCode};

use anyhow::Context as _;
use belljar_contract::exact_json;
use belljar_project::{Project, check_workflow};
use belljar_workflow::{Action, DagFault as CheckFault, DagFaults, Task};
use belljar_workflow_formats::{
    self as formats, CodeExecution, FileFault, Format, FormatOptions, ParsedWorkflow,
};

use crate::cli::{
    arguments::WorkflowValidateArguments,
    print_json,
    terminal::{
        style::{TextRole, TextStyle},
        visible::for_stream,
    },
};

/// Larger files are not workflows.
const MOST_BYTES: u64 = 16 << 20;

/// A parsed workflow file.
pub(super) struct WorkflowFile {
    pub(super) read: ParsedWorkflow,
    name: String,
    text: String,
}

/// The faults of a workflow file.
pub(super) struct FileFaults(Vec<FileFault>);

impl WorkflowFile {
    /// Reads a file. The inner error lists the faults in the file, the outer one says why it cannot
    /// be read.
    pub(super) fn load(
        path: &Path,
        code: CodeExecution,
    ) -> anyhow::Result<Result<Self, FileFaults>> {
        let (file, faults) = Self::load_in_part(path, code)?;
        Ok(file.filter(|_| faults.0.is_empty()).ok_or(faults))
    }

    /// Reads a file as far as it can be read, with its faults.
    fn load_in_part(
        path: &Path,
        code: CodeExecution,
    ) -> anyhow::Result<(Option<Self>, FileFaults)> {
        let name = path.display().to_string();
        let about = || format!("cannot read the workflow {name}");
        let size = fs::metadata(path).with_context(about)?.len();
        anyhow::ensure!(size <= MOST_BYTES, "{name} is too large for a workflow: {size} bytes");
        let text = fs::read_to_string(path).with_context(about)?;
        let options = FormatOptions { code };
        let (read, faults) = formats::read_in_part(&name, &text, &options);
        Ok((read.map(|read| Self { read, name, text }), FileFaults(faults)))
    }

    /// Adds the lines of their tasks to the faults of a workflow.
    pub(super) fn located(&self, faults: &DagFaults) -> FileFaults {
        FileFaults(faults.0.iter().map(|fault| self.locate(fault)).collect())
    }

    fn locate(&self, fault: &CheckFault) -> FileFault {
        let found = match &fault.task {
            Some(path) => place(&self.text, path),
            None => position(&self.text, &fault.part).map(|at| (None, at)),
        };
        let (node, (line, column)) = found.unwrap_or_else(|| (fault.task.clone(), (1, 1)));
        let near = fault.near.join("` or `");
        FileFault {
            file: self.name.clone(),
            line,
            column,
            node,
            message: format!("{}: {}", fault.part, fault.what),
            help: (!near.is_empty()).then(|| format!("did you mean `{near}`?")),
        }
    }

    /// All faults in the order of the file: its own, and those of its workflow that do not follow from
    /// them.
    fn all_faults(&self, own: FileFaults, found: &DagFaults) -> FileFaults {
        let is_new = |fault: &&CheckFault| own.0.is_empty() || self.is_new(fault, &own.0);
        let found: Vec<_> = found.0.iter().filter(is_new).map(|fault| self.locate(fault)).collect();
        let mut all = own.0;
        all.extend(found);
        all.sort_by_key(|fault| (fault.line, fault.column));
        FileFaults(all)
    }

    /// Whether a fault of the workflow does not follow from a fault of the file.
    fn is_new(&self, fault: &CheckFault, own: &[FileFault]) -> bool {
        let names_tool = fault.part.ends_with("tool");
        let (node, part) = (fault.task.as_deref(), &*fault.part);
        let is_at_fault = own.iter().any(|own| own.node.is_some() && own.node.as_deref() == node);
        // A file is checked for these when it is read.
        let is_known = matches!(part, "id" | "depends_on") || part.contains("decisions");
        // The routes of an agent, and the settings of a task whose action cannot be read, are not what
        // their author wrote.
        let is_made_up = self.read.format == Format::Agent
            || is_at_fault && matches!(part, "speculate" | "compensate" | "retry");
        names_tool || !is_known && !is_made_up
    }

    /// Prints the warnings to standard error.
    pub(super) fn warn(&self) -> io::Result<()> {
        let style = TextStyle::of_stderr();
        for warning in &self.read.warnings {
            let text = warning.to_string();
            let text = for_stream(&text, style);
            writeln!(io::stderr(), "{}: {text}", style.paint(TextRole::Caution, "warning"))?;
        }
        Ok(())
    }
}

impl FileFaults {
    /// Prints all faults; the exit code says that the file is not valid.
    pub(super) fn print(&self, as_json: bool) -> anyhow::Result<ExitCode> {
        if as_json {
            print_json(&exact_json!({ "valid": false, "faults": self.0 }))?;
        } else {
            let style = TextStyle::of_stderr();
            for fault in &self.0 {
                let text = fault.to_string();
                let text = for_stream(&text, style);
                writeln!(io::stderr(), "{}: {text}", style.paint(TextRole::Bad, "error"))?;
            }
        }
        Ok(ExitCode::from(super::super::USAGE_ERROR))
    }
}

/// The innermost task of a path that the file names, and its position. Tasks generated for a node
/// count as that node.
fn place(text: &str, path: &str) -> Option<(Option<String>, (u32, u32))> {
    let own = |name: &str| {
        let made = ["__next", "__enter", "__loop", "__at", "__state"];
        made.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
    };
    let mut parts: Vec<String> = path.split('/').map(own).collect();
    while let Some(last) = parts.last() {
        if let Some(at) = position(text, last) {
            parts.dedup();
            return Some((Some(parts.join("/")), at));
        }
        parts.pop();
    }
    None
}

/// The position of a task: the first line with `id` or `name` and its name, or with it as a key.
fn position(text: &str, id: &str) -> Option<(u32, u32)> {
    let named = |line: &str| {
        let line = line.trim_start_matches([' ', '\t', '-', '{', ',']);
        let (key, value) = line.split_once(':')?;
        let bare = |text: &str| text.trim().trim_matches(['"', '\'', ',', '}', ' ']).to_owned();
        let (key, value) = (bare(key), bare(value.split(" #").next().unwrap_or_default()));
        let first = value.split(['"', '\'', ',']).next().unwrap_or_default();
        let is_it = matches!(&*key, "id" | "name") && (value == id || first == id);
        (is_it || key == id).then_some(())
    };
    let at = text.lines().position(|line| named(line).is_some())?;
    let column = text.lines().nth(at)?.find(id)?;
    Some((u32::try_from(at + 1).ok()?, u32::try_from(column + 1).ok()?))
}

/// Runs `belljar workflow validate`.
pub(super) async fn validate(
    arguments: &WorkflowValidateArguments,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let (file, own) = WorkflowFile::load_in_part(&arguments.file, CodeExecution::WithShell)?;
    let Some(file) = file else { return own.print(arguments.json) };
    let wants_tools = !arguments.no_tools && project.has_servers();
    let bridge = wants_tools.then(|| project.bridge(None)).transpose()?;
    let checked = check_workflow(&file.read.dag, bridge.as_ref()).await;
    if let Some(bridge) = &bridge {
        bridge.shutdown().await;
    }
    let found = checked.err().unwrap_or_else(|| DagFaults(Vec::new()));
    let faults = file.all_faults(own, &found);
    if !faults.0.is_empty() {
        return faults.print(arguments.json);
    }
    let unchecked = bridge.is_none() && !arguments.no_tools && calls_tools(&file.read.dag.tasks);
    let needs_code = WorkflowFile::load(&arguments.file, CodeExecution::Off)?.is_err();
    let needs_shell = WorkflowFile::load(&arguments.file, CodeExecution::On)?.is_err();
    if arguments.json {
        let read = &file.read;
        print_json(&exact_json!({
            "valid": true,
            "name": read.dag.name,
            "format": read.format,
            "tasks": read.dag.tasks.len(),
            "needs_code_execution": needs_code,
            "needs_shell": needs_shell,
            "tools_checked": bridge.is_some(),
            "warnings": read.warnings,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    file.warn()?;
    if unchecked {
        let text = "its tools were not checked: no MCP servers are configured";
        let style = TextStyle::of_stderr();
        writeln!(io::stderr(), "{}: {text}", style.paint(TextRole::Caution, "warning"))?;
    }
    let tasks = file.read.dag.tasks.len();
    let code = match (needs_code, needs_shell) {
        (false, _) => "",
        (true, false) => "; it needs --enable-code-execution",
        (true, true) => "; it needs --enable-code-execution --enable-shell",
    };
    writeln!(io::stdout(), "{}: valid, {tasks} tasks{code}", arguments.file.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a task, or a nested one, calls a tool.
fn calls_tools(tasks: &[Task]) -> bool {
    tasks.iter().any(|task| match &task.action {
        Action::McpTool(_) => true,
        Action::Foreach(each) => calls_tools(std::slice::from_ref(&each.each)),
        Action::Loop(rounds) => calls_tools(&rounds.body),
        Action::Workflow { workflow, .. } => calls_tools(&workflow.tasks),
        Action::CodeExecution(_)
        | Action::Sandbox(_)
        | Action::Approval { .. }
        | Action::Wait(_)
        | Action::Pass { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{place, position};

    #[test]
    fn f8_what_was_made_of_a_node_is_told_at_the_node() {
        let text = "nodes:\n  - name: all\n  - name: two\n";
        assert_eq!(place(text, "all/do/action"), Some((Some("all".to_owned()), (2, 11))));
        assert_eq!(place(text, "two__next"), Some((Some("two".to_owned()), (3, 11))));
        assert_eq!(place(text, "two__loop/two"), Some((Some("two".to_owned()), (3, 11))));
        assert_eq!(place(text, "three"), None);
    }

    #[test]
    fn f8_a_task_is_found_where_it_is_named() {
        let text = "tasks:\n  - id: one\n  - {id: \"two\", type: pass}\nnodes:\n  three:\n";
        assert_eq!(position(text, "one"), Some((2, 9)));
        assert_eq!(position(text, "two"), Some((3, 11)));
        assert_eq!(position(text, "three"), Some((5, 3)));
        assert_eq!(position(text, "four"), None);
    }
}
