//! Compression of answers, when the client asks for it.

mod deflate;

use std::cell::RefCell;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use http_body::Body as _;
use http_body_util::BodyExt;

use crate::give_way::{LARGE, handing_over};
use crate::problem::Refusal;
use deflate::Deflate;

/// Below this an answer does not get shorter by enough.
const WORTH_IT: usize = 1_024;

thread_local! {
    /// Each worker keeps one.
    static DEFLATE: RefCell<Deflate> = RefCell::new(Deflate::new());
}

/// Whether the client takes gzip.
pub fn wanted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let (mut gzip, mut any) = (None, None);
    for coding in values.flat_map(|value| value.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refused = parts
            .filter_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
            .any(|quality| quality.trim().parse::<f32>().is_ok_and(|quality| quality <= 0.0));
        if name.eq_ignore_ascii_case("gzip") {
            gzip = Some(!refused);
        } else if name == "*" {
            any = Some(!refused);
        }
    }
    // `*` is for what is not named.
    gzip.or(any).unwrap_or(false)
}

/// Compresses an answer whose length is known: it is in memory as a whole. A stream is sent as it is.
pub async fn compressed(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if body.size_hint().exact().is_none_or(|size| size == 0)
        || parts.headers.contains_key(header::CONTENT_ENCODING)
    {
        return Response::from_parts(parts, body);
    }
    let Ok(whole) = body.collect().await else {
        return Refusal::internal("an answer's body broke off").into_response();
    };
    let bytes = whole.to_bytes();
    match handing_over(bytes.len() > LARGE, || compress(&bytes)) {
        Some(packed) => {
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(packed))
        }
        None => Response::from_parts(parts, Body::from(bytes)),
    }
}

/// The bytes as gzip; none if that is not worth it.
pub fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < WORTH_IT {
        return None;
    }
    // A header without name and time, so that the same answer is the same bytes.
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];
    out.reserve(bytes.len() / 4 + 64);
    let mut out = DEFLATE.with_borrow_mut(|deflate| deflate.write(bytes, out));
    out.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    // The length modulo 2^32, as the format has it.
    out.extend_from_slice(&bytes.len().to_le_bytes()[..4]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_compressed_unpacks_to_what_it_was_every_time() {
        for size in [WORTH_IT, 7_000, 900 * 1024] {
            let text: Vec<u8> =
                (0..size).map(|n| b"{\"id\":\"podinfo\"},"[n % 17] ^ u8::from(n % 1013 == 0)).collect();
            let first = compress(&text);
            for _ in 0..2 {
                // What was compressed in between changes nothing.
                compress(&text[1..]);
                let packed = compress(&text).expect("it is large enough");
                assert_eq!(Some(&packed), first.as_ref(), "the same answer is the same bytes");
                assert!(packed.len() < text.len() / 2);
                let mut unpacked = Vec::new();
                flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).expect("gzip");
                assert_eq!(unpacked, text);
            }
        }
        assert_eq!(compress(b"short"), None);
    }

    #[test]
    fn what_cannot_be_compressed_still_unpacks() {
        let mut seed = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33).to_le_bytes()[0]
        })
        .take(100_000)
        .collect();
        let mut unpacked = Vec::new();
        let packed = compress(&noise).expect("it is large enough");
        flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).expect("gzip");
        assert_eq!(unpacked, noise);
    }

    #[test]
    fn a_client_gets_gzip_if_it_asks_for_it() {
        for (value, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip;q=0, *", false),
            ("br, *;q=0", false),
            ("identity", false),
            ("br", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().expect("a value"));
            assert_eq!(wanted(&headers), expected, "{value}");
        }
        assert!(!wanted(&HeaderMap::new()));
    }
}
