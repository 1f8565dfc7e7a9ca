//! A bound on the MCP sessions of older clients: a client that disconnects without ending its
//! session leaves it behind. Beyond the bound, the session that was idle longest ends.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName},
    middleware::Next,
    response::Response,
};
use rmcp::transport::streamable_http_server::session::{
    SessionManager as _, local::LocalSessionManager,
};

const HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// The sessions there are, and when each was last used.
#[derive(Debug)]
pub(crate) struct McpSessions {
    all: Arc<LocalSessionManager>,
    most: usize,
    last_used: Mutex<HashMap<String, Instant>>,
}

impl McpSessions {
    pub(crate) fn new(all: Arc<LocalSessionManager>, most: usize) -> Self {
        Self { all, most, last_used: Mutex::default() }
    }

    /// Notes that a session was used; gives the session to end if there are too many.
    fn touch(&self, id: &str, now: Instant) -> Option<String> {
        let mut last_used = self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        last_used.insert(id.to_owned(), now);
        if last_used.len() <= self.most {
            return None;
        }
        let quietest = last_used.iter().min_by_key(|(_, at)| **at).map(|(id, _)| id.clone())?;
        last_used.remove(&quietest);
        Some(quietest)
    }

    fn remove(&self, id: &str) {
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

fn session(headers: &HeaderMap) -> Option<String> {
    headers.get(HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned)
}

/// Notes which sessions requests use, and ends the one idle longest if there are too many.
pub(crate) async fn track_session(
    State(sessions): State<Arc<McpSessions>>,
    request: Request,
    next: Next,
) -> Response {
    let asked = session(request.headers());
    let ends = request.method() == axum::http::Method::DELETE;
    let response = next.run(request).await;
    let is_success = response.status().is_success();
    match (asked, session(response.headers())) {
        (Some(id), _) if ends || !is_success => sessions.remove(&id),
        (Some(id), _) | (None, Some(id)) if is_success => {
            if let Some(quietest) = sessions.touch(&id, Instant::now()) {
                tracing::warn!(
                    session = quietest,
                    "too many MCP sessions; ended the one that was idle longest"
                );
                let _ = sessions.all.close_session(&quietest.into()).await;
            }
        }
        _ => {}
    }
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn e1_the_quietest_session_makes_room() {
        let sessions = McpSessions::new(Arc::default(), 2);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(sessions.touch("a", at(0)), None);
        assert_eq!(sessions.touch("b", at(1)), None);
        assert_eq!(sessions.touch("a", at(2)), None);
        assert_eq!(sessions.touch("c", at(3)), Some("b".to_owned()));
        sessions.remove("a");
        assert_eq!(sessions.touch("d", at(4)), None);
    }
}
