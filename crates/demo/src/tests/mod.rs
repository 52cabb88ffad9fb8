//! The demo seen from outside: over HTTP within this process, and as processes of their own.

mod collector;
mod in_process;
mod processes;
mod study;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const NOT_SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// The status and the body of a GET.
async fn get(url: &str, traceparent: Option<&str>) -> (StatusCode, String) {
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let mut request = Request::get(url).header("user-agent", "test");
    if let Some(traceparent) = traceparent {
        request = request.header("traceparent", traceparent);
    }
    let request = request.body(Empty::new()).expect("a good request");
    let response = client.request(request).await.expect("an answer");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("text"))
}
