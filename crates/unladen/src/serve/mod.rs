//! `unladen serve`: the studies and runs below a folder as pages: lists, trends, two results side by side, a run under way, and
//! every file. Reads run folders and never writes to them; judges nothing that is not judged.
//!
//! It answers on loopback unless told otherwise, only under names that mean this machine ([`guard`]), only `GET` and `HEAD`, and of
//! the disk it shows run folders and nothing else ([`files`]).

pub mod files;
pub mod folders;

mod events;
mod pages;

use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path as Segments, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use unladen_judge::curves;

use crate::guard::{self, Names};
use folders::{Folder, Folders};

/// What a page may do: run the server's own scripts, and ask the server. The chart library writes styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// The pages' own script and style: those of `report.html`, and what is added.
const SCRIPT: &str = include_str!("serve.js");
const STYLE: &str = include_str!("serve.css");

/// What to serve, and to whom.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder below which run folders are looked for.
    pub root: PathBuf,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Names that are answered to besides loopback and that address.
    pub names: Vec<String>,
}

/// The server, bound and not answering yet.
#[derive(Debug)]
pub struct Server {
    listener: tokio::net::TcpListener,
    router: Router,
}

impl Server {
    /// Listens. Needs a runtime of tokio.
    ///
    /// # Errors
    /// When the folder cannot be read or the address is taken.
    pub async fn bind(options: Options) -> io::Result<Self> {
        let root = options.root.canonicalize()?;
        let listener = tokio::net::TcpListener::bind(options.listen).await?;
        let names = Names::new(listener.local_addr()?.ip(), options.names);
        Ok(Self { listener, router: guard::guarded(router(root), names) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers for ever.
    ///
    /// # Errors
    /// When nothing can be accepted any more.
    pub async fn serve(self) -> io::Result<()> {
        axum::serve(self.listener, self.router).await
    }
}

fn router(root: PathBuf) -> Router {
    Router::new()
        .route("/", get(list))
        .route("/study", get(study))
        .route("/compare", get(compare))
        .route("/live/{*id}", get(live))
        .route("/events/{*id}", get(events))
        .route("/files/{*path}", get(file))
        .route("/api/runs", get(runs))
        .route("/api/trends", get(trends))
        .route("/api/resources", get(resources))
        .route(
            "/assets/serve.css",
            get(async || typed("text/css; charset=utf-8", format!("{}{STYLE}", unladen_report::STYLE))),
        )
        .route("/assets/serve.js", get(async || typed("text/javascript; charset=utf-8", SCRIPT)))
        .route("/assets/plotly.js", get(library))
        .layer(middleware::map_response(with_headers))
        .with_state(Arc::new(Folders::new(root)))
}

type Shared = State<Arc<Folders>>;

async fn list(State(folders): Shared) -> Response {
    page(pages::list(&folders.all()))
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

async fn study(State(folders): Shared, Query(Named { name }): Query<Named>) -> Response {
    match of_study(&folders, &name) {
        found if found.is_empty() => missing("no study of this name has run here"),
        found => page(pages::study(&name, &found)),
    }
}

/// The run folders of a study, the oldest first.
fn of_study(folders: &Folders, name: &str) -> Vec<Folder> {
    let mut found: Vec<Folder> = folders.all().into_iter().filter(|it| it.study() == name).collect();
    found.sort_by_cached_key(|it| (it.started(), it.id.clone()));
    found
}

#[derive(Deserialize)]
struct Sides {
    a: String,
    b: String,
}

async fn compare(State(folders): Shared, Query(Sides { a, b }): Query<Sides>) -> Response {
    let (Some(before), Some(after)) = (folders.get(&a), folders.get(&b)) else {
        return missing("one of the two run folders is not here");
    };
    // Whichever was chosen first: what came later is held against what came before.
    let (before, after) = if before.started() <= after.started() { (before, after) } else { (after, before) };
    match (&before.findings, &after.findings) {
        (Some(_), Some(_)) if before.study() != after.study() => {
            (StatusCode::CONFLICT, "these are two studies; results of one study can be compared\n").into_response()
        }
        (Some(of_before), Some(of_after)) => page(pages::compare(&before, of_before, &after, of_after)),
        _ => missing("one of the two is not judged yet: `unladen report` on its folder does it"),
    }
}

async fn live(State(folders): Shared, Segments(id): Segments<String>) -> Response {
    match folders.get(&id) {
        Some(folder) => page(pages::live(&folder)),
        None => missing("there is no such run folder"),
    }
}

async fn events(State(folders): Shared, Segments(id): Segments<String>) -> Response {
    match folders.get(&id) {
        Some(folder) => events::follow(folder.path).into_response(),
        None => missing("there is no such run folder"),
    }
}

async fn file(State(folders): Shared, Segments(path): Segments<String>) -> Response {
    let all = folders.all();
    let Some((id, rest)) = files::split(&path, all.iter().map(|it| it.id.as_str())) else {
        return missing("there is no such run folder");
    };
    let Some(folder) = all.iter().find(|it| it.id == id) else { return missing("there is no such run folder") };
    let rest = rest.components().collect::<PathBuf>();
    let is_folder = rest.as_os_str().is_empty()
        || files::open_below(&folder.path, &rest).and_then(|it| it.metadata()).is_ok_and(|it| it.is_dir());
    if is_folder {
        return match files::list(&folder.path, &rest) {
            // Links on the page start from the folder.
            Ok(_) if !path.ends_with('/') => {
                Redirect::permanent(&format!("/files/{}/", pages::encoded(&path))).into_response()
            }
            Ok(entries) => page(pages::files(folder, &rest, &entries)),
            Err(_) => missing("there is no such file"),
        };
    }
    let opened = files::open_below(&folder.path, &rest).ok();
    opened.and_then(|it| files::answer(&rest, it)).unwrap_or_else(|| missing("there is no such file"))
}

async fn runs(State(folders): Shared) -> Response {
    Json(folders.all().iter().map(Folder::line).collect::<Vec<_>>()).into_response()
}

async fn trends(State(folders): Shared, Query(Named { name }): Query<Named>) -> Response {
    Json(pages::trends(&of_study(&folders, &name))).into_response()
}

#[derive(Deserialize)]
struct Chosen {
    id: String,
}

/// CPU and memory of every service over the time of a run. All timelines of the folder are read for it, so not by the one thread that
/// answers.
async fn resources(State(folders): Shared, Query(Chosen { id }): Query<Chosen>) -> Response {
    let Some(folder) = folders.get(&id) else { return missing("there is no such run folder") };
    match tokio::task::spawn_blocking(move || curves::resources(&folder.path)).await {
        Ok(Ok(resources)) => Json(resources).into_response(),
        Ok(Err(error)) => missing(&error.to_string()),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// The chart library; hardly any client takes it otherwise than compressed.
async fn library(headers: HeaderMap) -> Response {
    let compressed = unladen_report::CHART_LIBRARY;
    let takes = |value: &HeaderValue| value.to_str().is_ok_and(|it| it.contains("gzip"));
    let lasting = (header::CACHE_CONTROL, "max-age=86400");
    if headers.get_all(header::ACCEPT_ENCODING).iter().any(takes) {
        let headers =
            [(header::CONTENT_TYPE, "text/javascript; charset=utf-8"), (header::CONTENT_ENCODING, "gzip"), lasting];
        return (headers, compressed).into_response();
    }
    let mut text = String::new();
    match flate2::read::GzDecoder::new(compressed).read_to_string(&mut text) {
        Ok(_) => ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8"), lasting], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn typed(media_type: &'static str, text: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, media_type)], text).into_response()
}

fn page(rendered: Result<String, minijinja::Error>) -> Response {
    match rendered {
        Ok(text) => Html(text).into_response(),
        // The templates are part of the program: a failure is a bug, and is shown as one.
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")).into_response(),
    }
}

fn missing(what: &str) -> Response {
    (StatusCode::NOT_FOUND, format!("{what}\n")).into_response()
}

/// What every answer says of itself, unless it knows better.
async fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let mut unless_known = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    unless_known(header::CONTENT_SECURITY_POLICY, POLICY);
    unless_known(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    unless_known(header::REFERRER_POLICY, "no-referrer");
    unless_known(header::CACHE_CONTROL, "no-store");
    unless_known(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    response
}
