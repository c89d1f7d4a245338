//! A server that looks an answer up and sends it, with hyper and nothing else: the least that a poll can cost in Rust.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, ETAG, USER_AGENT, VARY,
};
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::answers;

struct Kept {
    etag: HeaderValue,
    plain: Bytes,
    gzip: Bytes,
}

/// Serves recorded answers until it is killed.
pub(crate) fn serve(file: &Path) {
    let kept: HashMap<String, Kept> = answers::read(file)
        .map(|answer| {
            let etag = HeaderValue::from_str(&answer.etag).expect("a header");
            (answer.path, Kept { etag, plain: answer.plain.into(), gzip: answer.gzip.into() })
        })
        .collect();
    let kept = Arc::new(kept);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("an address");
        eprintln!("{{\"address\":\"{}\"}}", listener.local_addr().expect("an address"));
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            let kept = kept.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let response = answer(&kept, &request);
                    async move { Ok::<_, Infallible>(response) }
                });
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

/// The same headers as those of the service.
fn answer(kept: &HashMap<String, Kept>, request: &Request<hyper::body::Incoming>) -> Response<Full<Bytes>> {
    let found = &kept[request.uri().path()];
    let gzip = request.headers().contains_key(ACCEPT_ENCODING);
    let body = if gzip { &found.gzip } else { &found.plain };
    let mut response = Response::new(Full::new(body.clone()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding, Authorization"));
    headers.insert(ETAG, found.etag.clone());
    headers.insert("x-request-id", HeaderValue::from_static("00000000-0000-0000-0000-000000000000"));
    if gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if request.headers().get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"flux-operator/"))
    {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
