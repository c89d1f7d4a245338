//! What the service answers to every poll, in a file: the other servers send the same bytes.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use bench::Client;

/// The answer to the poll of one cluster.
pub(crate) struct Recorded {
    pub(crate) path: String,
    pub(crate) etag: String,
    pub(crate) plain: Vec<u8>,
    pub(crate) gzip: Vec<u8>,
}

/// The path that the nth request polls.
pub(crate) fn poll_path(n: usize, clusters: usize) -> String {
    // A prime, so that neighbours are not polled one after the other.
    format!("/api/v2/flux/clusters/{}/platform-components", bench::cluster_dns((n * 7919) % clusters))
}

/// Asks the service for all answers, and writes them down. Gives the mean size of one, plain and compressed.
pub(crate) fn record(address: &str, clusters: usize, file: &Path) -> (usize, usize) {
    let mut out = BufWriter::new(std::fs::File::create(file).expect("a file"));
    let mut client = Client::open(address);
    let (mut plain_bytes, mut gzip_bytes) = (0, 0);
    for n in 0..clusters {
        let path = poll_path(n, clusters);
        let plain = client.poll(&path, false, false);
        let gzip = client.poll(&path, false, true);
        assert_eq!((plain.status, gzip.status), (200, 200));
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&*gzip.body).read_to_end(&mut unpacked).expect("gzip");
        assert!(unpacked == plain.body, "{path} is another answer when it is compressed");
        plain_bytes += plain.body.len();
        gzip_bytes += gzip.body.len();
        for part in [path.as_bytes(), plain.etag.as_bytes(), &plain.body, &gzip.body] {
            let length = u32::try_from(part.len()).expect("it is small");
            out.write_all(&length.to_le_bytes()).and_then(|()| out.write_all(part)).expect("written");
        }
    }
    out.flush().expect("written");
    (plain_bytes / clusters, gzip_bytes / clusters)
}

/// Reads them again, one by one.
pub(crate) fn read(file: &Path) -> impl Iterator<Item = Recorded> {
    let mut from = BufReader::new(std::fs::File::open(file).expect("a file"));
    std::iter::from_fn(move || {
        let mut next = || {
            let mut length = [0; 4];
            from.read_exact(&mut length).ok()?;
            let mut part = vec![0; u32::from_le_bytes(length) as usize];
            from.read_exact(&mut part).ok()?;
            Some(part)
        };
        let path = String::from_utf8(next()?).expect("a path");
        let etag = String::from_utf8(next()?).expect("a tag");
        Some(Recorded { path, etag, plain: next()?, gzip: next()? })
    })
}
