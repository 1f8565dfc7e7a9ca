//! Workflows that run nothing: a task named `ask` asks a person, `agent` asks the agent, `sleep`
//! never ends, `fail` fails, `large` gives a large output; any other ends at once. One after the
//! other.

use std::{
    collections::BTreeMap,
    sync::{Mutex, atomic::Ordering},
    time::Duration,
};

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonValue, exact_json};
use belljar_server::{
    CommandSender, EventEffect, WorkflowApiError, WorkflowBackend, WorkflowCommandAnswer,
    WorkflowCommandRequest, WorkflowEventInfo, WorkflowFork, WorkflowInfo, WorkflowQuestion,
    WorkflowReport, WorkflowRequest, WorkflowSource,
};
use tokio::time::Instant;

use crate::fake::FakeBackend;

pub(crate) type AllWorkflows = Mutex<BTreeMap<String, FakeWorkflow>>;

#[derive(Debug, Default)]
pub(crate) struct FakeWorkflow {
    tasks: Vec<String>,
    done: usize,
    inputs: JsonValue,
    status: &'static str,
    events: Vec<WorkflowEventInfo>,
    decision: Option<&'static str>,
    pub(crate) commands: BTreeMap<String, (CommandSender, WorkflowCommandAnswer)>,
}

impl FakeWorkflow {
    fn tell(&mut self, name: &str, data: JsonValue, effect: EventEffect) {
        let (seq, line) = (self.events.len() as u64 + 1, name.replace('_', " "));
        self.events.push(WorkflowEventInfo {
            seq,
            name: name.into(),
            at_ms: seq,
            data,
            line,
            effect,
        });
    }

    fn end(&mut self, status: &'static str) {
        self.status = status;
        self.decision = None;
        self.tell("workflow_ended", exact_json!({"status": status}), EventEffect::Ends);
        self.tell("checkpoint_saved", exact_json!({}), EventEffect::Continues);
    }

    fn is_over(&self) -> bool {
        self.events.iter().any(|event| event.effect == EventEffect::Ends)
    }

    fn go_on(&mut self) {
        while let Some(task) = self.tasks.get(self.done).cloned() {
            self.tell("task_started", exact_json!({"task": task}), EventEffect::Continues);
            match task.as_str() {
                "ask" => self.decision = Some("human"),
                "agent" => self.decision = Some("agent"),
                "sleep" => return,
                "fail" => return self.end("failed"),
                _ => {}
            }
            if let Some(by) = self.decision {
                let decision =
                    exact_json!({"id": "d1", "task": task, "by": by, "message": "go on?"});
                return self.tell("decision_required", decision, EventEffect::NeedsAttention);
            }
            self.tell("task_completed", exact_json!({"task": task}), EventEffect::Continues);
            self.done += 1;
        }
        self.end("completed");
    }

    fn obey(&mut self, command: &WorkflowCommandRequest) -> Result<(), WorkflowApiError> {
        let refused = |why: &str| Err(WorkflowApiError::BadCommand { why: why.to_owned() });
        let field = |name: &str| command.command.get(name).and_then(JsonValue::as_str);
        if self.is_over() {
            return refused("the workflow has ended");
        }
        match (field("command").unwrap(), self.decision) {
            ("approve" | "reject", Some("human")) if command.by == CommandSender::Agent => {
                let why = "a person decides d1".to_owned();
                Err(WorkflowApiError::NotYours { why, hint: "belljar workflow command".to_owned() })
            }
            ("approve", Some(_)) if field("decision") == Some("d1") => {
                self.decision = None;
                self.done += 1;
                self.go_on();
                Ok(())
            }
            ("reject", Some(_)) if field("decision") == Some("d1") => {
                self.end("failed");
                Ok(())
            }
            ("approve" | "reject", _) => refused("no such decision is open"),
            ("abort", _) => {
                self.end("aborted");
                Ok(())
            }
            _ => refused("not in this fake"),
        }
    }

    fn report(&self, id: &str) -> WorkflowReport {
        let ended = |at: usize| if at < self.done { "completed" } else { "waiting" };
        let tasks = self.tasks.iter().enumerate();
        let tasks: Vec<_> =
            tasks.map(|(at, task)| exact_json!({"task": task, "status": ended(at)})).collect();
        let decisions: Vec<_> =
            self.decision.iter().map(|by| exact_json!({"id": "d1", "by": by})).collect();
        let is_large = self.tasks.iter().any(|task| task == "large");
        let large = exact_json!("x".repeat(100_000));
        let output = if is_large { &large } else { &self.inputs };
        let last_event = self.events.len() as u64;
        let asks = self.decision == Some("human");
        let question = || WorkflowQuestion {
            decision: "d1".to_owned(),
            message: "go \u{202e}on?".to_owned(),
            expires_ms: None,
        };
        WorkflowReport {
            value: exact_json!({
                "id": id, "name": "", "status": self.status, "events": last_event, "tasks": tasks,
                "decisions": decisions,
                "output": if self.status == "completed" { output } else { &JsonValue::Null },
            }),
            status: WorkflowStatus::from_name(self.status).unwrap(),
            last_event,
            is_over: self.is_over(),
            questions: asks.then(question).into_iter().collect(),
        }
    }
}

fn faulty(fault: &str) -> WorkflowApiError {
    WorkflowApiError::Faulty { faults: vec![fault.to_owned()] }
}

impl FakeBackend {
    fn with_flow<T>(
        &self,
        id: &str,
        look: impl FnOnce(&mut FakeWorkflow) -> Result<T, WorkflowApiError>,
    ) -> Result<T, WorkflowApiError> {
        if self.no_workflows {
            return Err(WorkflowApiError::Off);
        }
        let mut all = self.workflows.lock().unwrap();
        let flow = all.get_mut(id);
        look(flow.ok_or_else(|| WorkflowApiError::Unknown { id: id.to_owned() })?)
    }
}

impl WorkflowBackend for FakeBackend {
    fn offers_workflows(&self) -> bool {
        !self.no_workflows
    }

    async fn run_workflow(&self, request: WorkflowRequest) -> Result<String, WorkflowApiError> {
        if self.no_workflows {
            return Err(WorkflowApiError::Off);
        }
        let workflow = match request.workflow {
            WorkflowSource::Json(given) => given,
            WorkflowSource::Text(text) => {
                serde_json::from_str(&text).map_err(|error| faulty(&error.to_string()))?
            }
        };
        let tasks = workflow.get("tasks").and_then(JsonValue::as_array);
        let tasks = tasks.ok_or_else(|| faulty("there are no tasks"))?;
        let name = |task: &JsonValue| task["id"].as_str().map(str::to_owned);
        let tasks: Option<Vec<_>> = tasks.iter().map(name).collect();
        let tasks = tasks.ok_or_else(|| faulty("a task without `id`"))?;
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let id = request.id.unwrap_or_else(|| format!("wf_{number}"));
        let mut all = self.workflows.lock().unwrap();
        if all.contains_key(&id) {
            return Err(WorkflowApiError::Taken { id });
        }
        let inputs = JsonValue::Object(request.inputs);
        let mut flow = FakeWorkflow { tasks, inputs, status: "running", ..FakeWorkflow::default() };
        flow.tell("workflow_started", exact_json!({}), EventEffect::Continues);
        flow.go_on();
        all.insert(id.clone(), flow);
        Ok(id)
    }

    async fn fork_workflow(
        &self,
        id: &str,
        fork: WorkflowFork,
    ) -> Result<String, WorkflowApiError> {
        let (tasks, inputs) =
            self.with_flow(id, |flow| Ok((flow.tasks.clone(), flow.inputs.clone())))?;
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let id = fork.id.unwrap_or_else(|| format!("wf_{number}"));
        let mut all = self.workflows.lock().unwrap();
        if all.contains_key(&id) {
            return Err(WorkflowApiError::Taken { id });
        }
        let mut forked =
            FakeWorkflow { tasks, inputs, status: "running", ..FakeWorkflow::default() };
        forked.tell("workflow_started", exact_json!({}), EventEffect::Continues);
        all.insert(id.clone(), forked);
        Ok(id)
    }

    async fn forget_workflow(&self, id: &str) -> Result<(), WorkflowApiError> {
        self.with_flow(id, |flow| match flow.report(id).is_over {
            true => Ok(()),
            false => Err(WorkflowApiError::NotOver { id: id.to_owned() }),
        })?;
        self.workflows.lock().unwrap().remove(id);
        Ok(())
    }

    async fn workflow(&self, id: &str) -> Result<WorkflowReport, WorkflowApiError> {
        self.with_flow(id, |flow| Ok(flow.report(id)))
    }

    async fn workflows(
        &self,
        at_most: u32,
        before: Option<&str>,
    ) -> Result<Vec<WorkflowInfo>, WorkflowApiError> {
        if self.no_workflows {
            return Err(WorkflowApiError::Off);
        }
        let all = self.workflows.lock().unwrap();
        let earlier = all.iter().rev().filter(|(id, _)| before.is_none_or(|at| id.as_str() < at));
        let info = |(id, flow): (&String, &FakeWorkflow)| WorkflowInfo {
            id: id.clone(),
            name: String::new(),
            status: WorkflowStatus::from_name(flow.status).unwrap(),
            created_ms: 1,
            updated_ms: 2,
        };
        Ok(earlier.take(at_most as usize).map(info).collect())
    }

    async fn workflow_events(
        &self,
        id: &str,
        after: u64,
        at_most: u32,
        wait: Duration,
    ) -> Result<Vec<WorkflowEventInfo>, WorkflowApiError> {
        let until = Instant::now() + wait;
        loop {
            let events = self.with_flow(id, |flow| {
                let later = flow.events.iter().filter(|event| event.seq > after);
                Ok(later.take(at_most as usize).cloned().collect::<Vec<_>>())
            })?;
            if !events.is_empty() || Instant::now() >= until {
                return Ok(events);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn command_workflow(
        &self,
        id: &str,
        command: WorkflowCommandRequest,
        _wait: Duration,
    ) -> Result<WorkflowCommandAnswer, WorkflowApiError> {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        self.with_flow(id, |flow| {
            let command_id = command.id.clone().unwrap_or_else(|| format!("cmd_{number}"));
            if let Some((_, answer)) = flow.commands.get(&command_id) {
                return Ok(answer.clone());
            }
            let reason = match flow.obey(&command) {
                Ok(()) => None,
                Err(WorkflowApiError::BadCommand { why }) => Some(why),
                Err(error) => return Err(error),
            };
            let answer = WorkflowCommandAnswer {
                command_id: command_id.clone(),
                accepted: Some(reason.is_none()),
                reason,
            };
            flow.commands.insert(command_id, (command.by, answer.clone()));
            Ok(answer)
        })
    }
}
