//! A machine made again from what the engine kept.

use crate::{
    driver::DriveError,
    effect::{Effect, Input},
    engine::Loaded,
    machine::Machine,
};

/// The machine after the last input. Its effects were performed, or are told by open intents.
pub(crate) fn rebuild(loaded: &Loaded) -> Result<Machine, DriveError> {
    let flow = &loaded.workflow.id;
    let damaged = |reason: String| DriveError::Damaged { flow: flow.clone(), reason };
    let (number, bytes) = &loaded.snapshot;
    let mut machine: Machine = serde_json::from_slice(bytes)
        .map_err(|error| damaged(format!("its snapshot {number}: {error}")))?;
    let forked_at = loaded.workflow.parent.as_ref().map(|(_, at)| *at);
    machine.adopt(flow, loaded.workflow.created_ms, forked_at);
    let mut told = None;
    for row in &loaded.inputs {
        let input: Input = serde_json::from_slice(&row.body)
            .map_err(|error| damaged(format!("its input {}: {error}", row.seq)))?;
        let effects = machine
            .apply(input)
            .map_err(|refusal| damaged(format!("its input {} is refused: {refusal}", row.seq)))?;
        if machine.taken() != row.seq {
            return Err(damaged(format!("its input {} came as {}", row.seq, machine.taken())));
        }
        let events = effects.iter().filter_map(|effect| {
            if let Effect::Event(event) = effect { Some(event.seq) } else { None }
        });
        told = events.max().or(told);
    }
    // Another version of this program may take the same inputs otherwise. Then what it would go on
    // with is not what was committed.
    match told {
        Some(told) if told != loaded.last_event => {
            Err(damaged(format!("replayed, it tells {told} events; it told {}", loaded.last_event)))
        }
        Some(_) | None => Ok(machine),
    }
}
