//! Requests that the host makes for code: each is decided about, recorded and sent as the requests of a
//! guest's programs are, by [`RequestForwarder`].
//!
//! The body of an answer stays in its connection until code asks for the next piece of it, so the host
//! holds one piece of each answer.

mod body;
mod request;

use std::{
    collections::HashMap,
    future::{pending, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http_body::Body as _;
use hyper::Response;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, sleep_until, timeout},
};

use crate::{
    body::ServerBody,
    connection::{OpenFailure, ProxyConnection},
    forward::RequestForwarder,
    state::{ProxyState, RunConnections},
};
pub use request::{FetchAnswer, MalformedFetch, OutgoingRequest, RequestContent};

use body::{RequestBody, Upload};

/// A fetch that was begun by this number, and the steps that it takes.
#[derive(Debug)]
pub struct FetchClient {
    state: Arc<ProxyState>,
    open: Mutex<HashMap<u32, Arc<OpenFetch>>>,
    idle: Mutex<Vec<IdleForwarder>>,
}

/// Why a step of a fetch did not succeed.
#[derive(Debug)]
pub enum FetchFailure {
    /// The request is none: it was not sent, and no rule was asked.
    Malformed(MalformedFetch),
    /// The rules, a person or a bound of the run are against it.
    Refused {
        /// The refused host or request, and the reason.
        message: String,
        /// The host and port to allow, if that is what is missing.
        missing: Option<String>,
    },
    /// The server could not be reached, or did not answer as servers do.
    Failed(String),
    /// It took longer than it was given.
    TimedOut,
    /// Code has no use for it any more.
    Cancelled,
}

/// A fetch that has not ended.
#[derive(Debug)]
struct OpenFetch {
    connection: Arc<ProxyConnection>,
    upload: tokio::sync::Mutex<Option<Upload>>,
    answer: tokio::sync::Mutex<Option<OpenAnswer>>,
    is_cancelled: watch::Sender<bool>,
    deadline: Option<Instant>,
}

/// An answer whose body has not ended.
#[derive(Debug)]
struct OpenAnswer {
    body: ServerBody,
    forwarder: IdleForwarder,
    _place: OwnedSemaphorePermit,
}

/// A forwarder whose connection to a server can be used again.
#[derive(Debug)]
struct IdleForwarder {
    origin: String,
    forwarder: RequestForwarder<RequestBody>,
    connection: Arc<ProxyConnection>,
}

/// Connections that are kept for the next fetch.
const MAX_IDLE: usize = 4;

impl FetchClient {
    /// Makes requests within the bounds that these connections share.
    pub fn new(connections: &RunConnections) -> Self {
        let (open, idle) = Default::default();
        Self { state: connections.0.clone(), open, idle }
    }

    /// Begins a fetch. Once this returns, its other steps may be taken; the future makes the request, and
    /// completes with the head of the answer.
    pub fn begin(
        self: &Arc<Self>,
        number: u32,
        request: OutgoingRequest,
    ) -> impl Future<Output = Result<FetchAnswer, FetchFailure>> + Send + use<> {
        let origin = request.origin();
        let kept = self.take_idle(&origin);
        let idle = kept.unwrap_or_else(|| {
            let connection = Arc::new(ProxyConnection::new(self.state.clone()));
            let forwarder = RequestForwarder::new(connection.clone());
            IdleForwarder { origin, forwarder, connection }
        });
        idle.connection.serve_fetch(number);
        let (body, upload) = body::of(&request.content);
        let open = Arc::new(OpenFetch {
            connection: idle.connection.clone(),
            upload: tokio::sync::Mutex::new(upload),
            answer: tokio::sync::Mutex::new(None),
            is_cancelled: watch::Sender::new(false),
            deadline: request.timeout.and_then(|time| Instant::now().checked_add(time)),
        });
        self.lock().insert(number, open.clone());
        let this = self.clone();
        async move {
            let made = open.unless_cancelled(this.request(idle, request, body)).await;
            match made {
                Ok((response, idle, place)) => {
                    this.answered(number, &open, response, idle, place).await
                }
                Err(failure) => {
                    this.end(number, &open).await;
                    Err(failure)
                }
            }
        }
    }

    /// Passes on a piece of a request's body. Completes when there is room for the next one; a server that
    /// has answered already may not want it.
    ///
    /// # Errors
    /// The fetch has ended, or takes no pieces.
    pub async fn send(&self, number: u32, piece: Bytes, is_last: bool) -> Result<(), FetchFailure> {
        let open = self.find(number)?;
        let sending = async {
            let mut upload = open.upload.lock().await;
            let sent = match upload.as_mut() {
                Some(upload) => upload.send(piece, is_last).await,
                None => return Err(FetchFailure::Malformed(MalformedFetch::NoPieces)),
            };
            if is_last || sent.is_err() {
                *upload = None;
            }
            sent
        };
        open.unless_cancelled(sending).await
    }

    /// The next piece of an answer's body; nothing at its end.
    ///
    /// # Errors
    /// The fetch has ended, or the connection breaks off.
    pub async fn read(&self, number: u32) -> Result<Bytes, FetchFailure> {
        let Ok(open) = self.find(number) else { return Ok(Bytes::new()) };
        let read = open.unless_cancelled(open.read()).await;
        match read {
            Ok(Some(piece)) => Ok(piece),
            Ok(None) => {
                let answer = open.answer.lock().await.take();
                let is_sent = self.end(number, &open).await;
                if let Some(OpenAnswer { forwarder, .. }) = answer.filter(|_| is_sent) {
                    self.keep(forwarder);
                }
                Ok(Bytes::new())
            }
            Err(failure) => {
                self.end(number, &open).await;
                Err(failure)
            }
        }
    }

    /// Ends a fetch that code has no use for.
    pub async fn cancel(&self, number: u32) {
        let Ok(open) = self.find(number) else { return };
        self.end(number, &open).await;
    }

    /// Ends all fetches and records that.
    pub async fn close(&self) {
        let all: Vec<u32> = self.lock().keys().copied().collect();
        for number in all {
            self.cancel(number).await;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Makes a request, once there is a place among the connections of the run.
    async fn request(
        &self,
        idle: IdleForwarder,
        request: OutgoingRequest,
        body: RequestBody,
    ) -> Result<(Response<ServerBody>, IdleForwarder, OwnedSemaphorePermit), FetchFailure> {
        let request = request.into_http(body).map_err(FetchFailure::Malformed)?;
        let place = place(self.state.places(), &self.state).await?;
        let answered = idle.forwarder.forward_absolute(request).await;
        let answered = answered.ok_or(FetchFailure::Malformed(MalformedFetch::Url))?;
        Ok((answered.map_err(|failure| FetchFailure::from(&failure))?, idle, place))
    }

    async fn answered(
        &self,
        number: u32,
        open: &OpenFetch,
        response: Response<ServerBody>,
        forwarder: IdleForwarder,
        place: OwnedSemaphorePermit,
    ) -> Result<FetchAnswer, FetchFailure> {
        let (parts, body) = response.into_parts();
        let is_whole = body.is_end_stream();
        let answer = FetchAnswer::of(&parts, is_whole);
        if is_whole {
            if self.end(number, open).await {
                self.keep(forwarder);
            }
        } else {
            let answer = OpenAnswer { body, forwarder, _place: place };
            *open.answer.lock().await = Some(answer);
            // A cancellation that came before has found nothing to end.
            if *open.is_cancelled.borrow() {
                self.end(number, open).await;
                return Err(FetchFailure::Cancelled);
            }
        }
        Ok(answer)
    }

    /// Ends a fetch: nothing of it is left but its record. Whether the whole request was sent.
    async fn end(&self, number: u32, open: &OpenFetch) -> bool {
        self.lock().remove(&number);
        // Other steps of it let go of what they hold.
        open.is_cancelled.send_replace(true);
        let upload = open.upload.lock().await.take();
        open.answer.lock().await.take();
        open.connection.close_all().await;
        upload.is_none()
    }

    fn take_idle(&self, origin: &str) -> Option<IdleForwarder> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|one| one.origin == origin)?;
        Some(idle.remove(at))
    }

    fn keep(&self, forwarder: IdleForwarder) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= MAX_IDLE {
            idle.remove(0);
        }
        idle.push(forwarder);
    }

    fn find(&self, number: u32) -> Result<Arc<OpenFetch>, FetchFailure> {
        self.lock().get(&number).cloned().ok_or(FetchFailure::Cancelled)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<OpenFetch>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenFetch {
    async fn read(&self) -> Result<Option<Bytes>, FetchFailure> {
        let mut answer = self.answer.lock().await;
        let Some(OpenAnswer { body, .. }) = answer.as_mut() else { return Ok(None) };
        loop {
            match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(FetchFailure::Failed(format!("the answer broke off: {error}")));
                }
                Some(Ok(frame)) => {
                    // Trailers are not data.
                    if let Ok(piece) = frame.into_data()
                        && !piece.is_empty()
                    {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }

    async fn unless_cancelled<T>(
        &self,
        step: impl Future<Output = Result<T, FetchFailure>>,
    ) -> Result<T, FetchFailure> {
        let mut is_cancelled = self.is_cancelled.subscribe();
        let too_late = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = is_cancelled.wait_for(|is| *is) => Err(FetchFailure::Cancelled),
            // Before the step: a server that always has more must not hold it up.
            () = too_late => Err(FetchFailure::TimedOut),
            done = step => done,
        }
    }
}

/// A place among the connections of the run. Those of programs wait in the backlog of their listener.
async fn place(
    places: &Arc<Semaphore>,
    state: &ProxyState,
) -> Result<OwnedSemaphorePermit, FetchFailure> {
    let taken = timeout(state.context().limits.connect, places.clone().acquire_owned()).await;
    taken.ok().and_then(Result::ok).ok_or_else(|| FetchFailure::Refused {
        message:
            "the run has its maximum of open connections: read or cancel the bodies of earlier \
                  answers"
                .to_owned(),
        missing: None,
    })
}

impl From<&OpenFailure> for FetchFailure {
    fn from(failure: &OpenFailure) -> Self {
        match failure {
            OpenFailure::Refused(destination, refusal) => Self::Refused {
                message: format!("{destination}: {refusal}"),
                missing: refusal.is_for_lack_of_rule().then(|| destination.to_string()),
            },
            OpenFailure::Failed(destination, error) => {
                Self::Failed(format!("could not reach {destination}: {error}"))
            }
        }
    }
}
