//! A receiver of gRPC calls by hyper: reads the body, throws it away and answers that all is well. `receive PORT`.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

type Error = Box<dyn std::error::Error>;

async fn answer(request: Request<Incoming>) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, hyper::Error> {
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    let trailers = async {
        let done = HeaderMap::from_iter([(hyper::header::HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"))]);
        Some(Ok(done))
    };
    let mut response = Response::new(Full::new(Bytes::from_static(&[0; 5])).with_trailers(trailers));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    Ok(response)
}

fn main() -> Result<(), Error> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: receive PORT")?.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            // The sink's own windows.
            let connection = http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(512 << 10)
                .initial_connection_window_size(1 << 20)
                .max_concurrent_streams(256)
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    eprintln!("{error}");
                }
            });
        }
    })
}
