//! A request as the receivers see it, whichever of the two servers read it: hyper for HTTP/1.1, [`crate::h2`] for HTTP/2.

use std::rc::Rc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, Uri, Version};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

use crate::body::{BodyError, Budget, Payload};
use crate::inbox::Reader;

/// Head and body. The head is shared by requests that have the same one, as those of an agent do.
#[derive(Debug)]
pub(crate) struct Request {
    parts: Rc<Parts>,
    body: Body,
}

/// A body that has yet to be read.
#[derive(Debug)]
pub(crate) enum Body {
    /// From hyper.
    Incoming(Incoming),
    /// Of a stream of HTTP/2.
    Stream(Reader),
}

impl Request {
    /// A request.
    pub(crate) fn new(parts: Rc<Parts>, body: Body) -> Self {
        Self { parts, body }
    }

    /// Header fields.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// What is asked for.
    pub(crate) fn uri(&self) -> &Uri {
        &self.parts.uri
    }

    /// How it is asked for.
    pub(crate) fn method(&self) -> &Method {
        &self.parts.method
    }

    /// HTTP/1.1 or HTTP/2.
    pub(crate) fn version(&self) -> Version {
        self.parts.version
    }

    /// The body alone.
    pub(crate) fn into_body(self) -> Body {
        self.body
    }
}

impl From<http::Request<Incoming>> for Request {
    fn from(request: http::Request<Incoming>) -> Self {
        let (parts, body) = request.into_parts();
        Self::new(Rc::new(parts), Body::Incoming(body))
    }
}

impl Body {
    /// All of it, if that is at most `limit` bytes and its sender is never silent for that long.
    pub(crate) async fn whole(
        self,
        limit: usize,
        budget: &Rc<Budget>,
        silence: Duration,
    ) -> Result<Payload, BodyError> {
        let mut body = match self {
            Self::Incoming(body) => body,
            Self::Stream(reader) => {
                let received = reader.watch();
                let mut whole = std::pin::pin!(reader.whole(limit));
                loop {
                    // It is not woken before the end, so it looks back now and then.
                    let before = received();
                    match timeout(silence, whole.as_mut()).await {
                        Ok(outcome) => return outcome,
                        Err(_) if received() == before => return Err(BodyError::Silent),
                        Err(_) => {}
                    }
                }
            }
        };
        let least = body.size_hint().lower();
        if least > limit as u64 {
            return Err(BodyError::TooLarge);
        }
        let mut payload = Payload::new(budget);
        payload.expect(least as usize);
        while let Some(frame) = timeout(silence, body.frame()).await.map_err(|_| BodyError::Silent)? {
            if let Ok(chunk) = frame.map_err(|_| BodyError::Connection)?.into_data() {
                payload.push(&chunk, limit)?;
            }
        }
        Ok(payload)
    }

    /// What came since the last call, at least a byte; `None` at the end.
    pub(crate) async fn piece(&mut self, budget: &Rc<Budget>) -> Result<Option<Payload>, BodyError> {
        let body = match self {
            Self::Incoming(body) => body,
            Self::Stream(reader) => return reader.piece().await,
        };
        while let Some(frame) = body.frame().await {
            match frame.map_err(|_| BodyError::Connection)?.into_data() {
                Ok(data) if !data.is_empty() => {
                    let mut payload = Payload::new(budget);
                    payload.push(&data, usize::MAX)?;
                    return Ok(Some(payload));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}
