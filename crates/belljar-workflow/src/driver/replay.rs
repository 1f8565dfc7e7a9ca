//! A machine rebuilt from its stored snapshot and the inputs after it.

use crate::{
    driver::DriveError,
    effect::{Effect, MachineInput},
    machine::Machine,
    workflow_store::LoadedWorkflow,
};
use belljar_contract::json_value;

/// The machine after the last input. Its effects were performed, or are listed in open intents.
pub(crate) fn rebuild(loaded: &LoadedWorkflow) -> Result<Machine, DriveError> {
    let flow = &loaded.workflow.id;
    let damaged = |reason: String| DriveError::Damaged { flow: flow.clone(), reason };
    let (number, bytes) = &loaded.snapshot;
    let mut machine: Machine = json_value::from_slice(bytes)
        .map_err(|error| damaged(format!("cannot read snapshot {number}: {error}")))?;
    let forked_at = loaded.workflow.parent.as_ref().map(|(_, at)| *at);
    machine.adopt(flow, loaded.workflow.created_ms, forked_at);
    let mut last_event = None;
    for row in &loaded.inputs {
        let input: MachineInput = json_value::from_slice(&row.body)
            .map_err(|error| damaged(format!("cannot read input {}: {error}", row.seq)))?;
        let effects = machine.apply(input).map_err(|refusal| {
            damaged(format!("input {} is refused on replay: {refusal}", row.seq))
        })?;
        if machine.taken() != row.seq {
            return Err(damaged(format!("input {} was replayed as {}", row.seq, machine.taken())));
        }
        let events = effects.iter().filter_map(|effect| {
            if let Effect::Event(event) = effect { Some(event.seq) } else { None }
        });
        last_event = events.max().or(last_event);
    }
    // Another version of this program may apply the same inputs differently. It would then continue
    // from a state that was never committed.
    match last_event {
        Some(last_event) if last_event != loaded.last_event => Err(damaged(format!(
            "replay gave {last_event} events; {} are stored",
            loaded.last_event
        ))),
        Some(_) | None => Ok(machine),
    }
}
