//! The bodies of answers: the server's, or a text of the proxy's.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::redact::Redactor;

/// The body of a server's answer, without the secrets of the rule that allowed the request.
#[derive(Debug)]
pub(crate) struct ServerBody {
    body: Incoming,
    redactor: Option<Redactor>,
    has_ended: bool,
}

/// The body of an answer to a guest.
#[derive(Debug)]
pub(crate) enum ProxyBody {
    Server(ServerBody),
    Text(Option<Bytes>),
}

impl ServerBody {
    pub(crate) fn new(body: Incoming, redactor: Option<Redactor>) -> Self {
        Self { body, redactor, has_ended: false }
    }
}

impl Body for ServerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Some(redactor) = &mut this.redactor else {
            return Pin::new(&mut this.body).poll_frame(context);
        };
        loop {
            if this.has_ended {
                return Poll::Ready(None);
            }
            let piece = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => redactor.piece(&data),
                    // Trailers could repeat a secret, too.
                    Err(_) => continue,
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    this.has_ended = true;
                    redactor.rest()
                }
            };
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || (self.body.is_end_stream() && self.held() == 0)
    }

    fn size_hint(&self) -> SizeHint {
        let (of_body, held) = (self.body.size_hint(), self.held());
        let mut hint = SizeHint::new();
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper + held);
        }
        hint.set_lower(of_body.lower() + held);
        hint
    }
}

impl ServerBody {
    fn held(&self) -> u64 {
        self.redactor.as_ref().map_or(0, |redactor| redactor.held() as u64)
    }
}

impl Body for ProxyBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Server(body) => Pin::new(body).poll_frame(context),
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Server(body) => body.is_end_stream(),
            Self::Text(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Server(body) => body.size_hint(),
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, |it| it.len() as u64)),
        }
    }
}
