//! What a request gets, whichever of the two servers sends it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use hyper::body::{Body, Frame};
use unladen_decode::frames::PREFIX;

/// What a request gets. Nearly every one gets the first, so it is not made of header maps.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A message of gRPC, and that all is well.
    Message(Vec<u8>),
    /// Anything else.
    Response(Box<Response<Reply>>),
}

impl From<Response<Reply>> for Answer {
    fn from(response: Response<Reply>) -> Self {
        Self::Response(Box::new(response))
    }
}

impl From<Answer> for Response<Reply> {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Message(message) => message_of_grpc(&message),
            Answer::Response(response) => *response,
        }
    }
}

/// A response with one message.
fn message_of_grpc(message: &[u8]) -> Response<Reply> {
    let mut framed = Vec::with_capacity(PREFIX + message.len());
    framed.push(0);
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(message);
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    grpc(Reply::new(framed, Some(trailers)))
}

/// A response of gRPC.
pub(crate) fn grpc(reply: Reply) -> Response<Reply> {
    let mut response = Response::new(reply);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// A reply's body: one piece of data, then perhaps trailers.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Reply {
    /// Data, then trailers if given.
    pub(crate) fn new(data: impl Into<Bytes>, trailers: Option<HeaderMap>) -> Self {
        Self { data: Some(data.into()).filter(|data: &Bytes| !data.is_empty()), trailers }
    }

    /// Data and trailers.
    pub(crate) fn into_parts(self) -> (Bytes, Option<HeaderMap>) {
        (self.data.unwrap_or_default(), self.trailers)
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = match self.data.take() {
            Some(data) => Some(Frame::data(data)),
            None => self.trailers.take().map(Frame::trailers),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}
