//! The body of a request: bytes, or pieces that code sends while the request is under way.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::{FetchFailure, RequestContent};

/// Pieces that wait for the connection.
const WAITING_PIECES: usize = 1;

/// The body of a request, as hyper writes it.
#[derive(Debug)]
pub(super) enum RequestBody {
    Whole(Option<Bytes>),
    Pieces {
        pieces: mpsc::Receiver<BodyPiece>,
        /// The bytes that are still to come, if the size is known.
        left: Option<u64>,
        has_ended: bool,
    },
}

/// A piece of a body that code sends.
#[derive(Debug)]
pub(super) struct BodyPiece {
    bytes: Bytes,
    is_last: bool,
}

/// Where code sends the pieces of a body.
#[derive(Debug)]
pub(super) struct Upload(mpsc::Sender<BodyPiece>);

/// The body of a request, and where its pieces are sent.
pub(super) fn of(content: &RequestContent) -> (RequestBody, Option<Upload>) {
    match content {
        RequestContent::None => (RequestBody::Whole(None), None),
        RequestContent::Whole(bytes) => (RequestBody::Whole(Some(bytes.clone())), None),
        RequestContent::Pieces { length } => {
            let (sender, pieces) = mpsc::channel(WAITING_PIECES);
            let body = RequestBody::Pieces { pieces, left: *length, has_ended: false };
            (body, Some(Upload(sender)))
        }
    }
}

impl Upload {
    /// Completes when there is room for the next piece. A server that does not take the rest of a body has
    /// its reasons: the answer says them.
    pub(super) async fn send(&self, bytes: Bytes, is_last: bool) -> Result<(), FetchFailure> {
        let _ = self.0.send(BodyPiece { bytes, is_last }).await;
        Ok(())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let (pieces, left, has_ended) = match self.get_mut() {
            Self::Whole(bytes) => {
                return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
            }
            Self::Pieces { pieces, left, has_ended } => (pieces, left, has_ended),
        };
        loop {
            if *has_ended {
                return Poll::Ready(None);
            }
            let Some(BodyPiece { bytes, is_last }) = ready!(pieces.poll_recv(context)) else {
                let error = io::Error::other("the body ended early");
                return Poll::Ready(Some(Err(error)));
            };
            *has_ended = is_last;
            if let Some(left) = left {
                let rest = left.checked_sub(bytes.len() as u64);
                match rest {
                    Some(rest) if rest == 0 || !is_last => *left = rest,
                    Some(_) | None => {
                        let error =
                            io::Error::other("the body is not as long as its Content-Length");
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Pieces { has_ended, .. } => *has_ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Pieces { left: Some(left), .. } => SizeHint::with_exact(*left),
            Self::Pieces { left: None, .. } => SizeHint::new(),
        }
    }
}
