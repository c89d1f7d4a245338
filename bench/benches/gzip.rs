//! Our own deflate beside the library that it takes the place of, on answers as clusters get them. Both are used again and again, as a
//! thread of the service does it.

use std::hint::black_box;
use std::io::Write as _;

use bench::cluster_dns;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flate2::{Compress, Compression, FlushCompress, Status};
use fleet::{Answer, render};

fn gzip(criterion: &mut Criterion) {
    let state = bench::fleet(1_000);
    let answers: Vec<Vec<u8>> = (0..1_000)
        .map(|n| match render(&state, &cluster_dns(n), "platform-components") {
            Answer::Inputs(inputs) => inputs.into_body(),
            other => panic!("{other:?}"),
        })
        .collect();
    let mut next = (0..answers.len()).cycle();
    let mut next = || &answers[next.next().unwrap_or_default()];
    let size = |compress: &mut dyn FnMut(&[u8]) -> usize| {
        answers.iter().map(|answer| compress(answer)).sum::<usize>() / answers.len()
    };

    let mut group = criterion.benchmark_group("gzip");
    group.throughput(Throughput::Bytes(answers[0].len() as u64));
    let mut ours = |answer: &[u8]| server::gzip::compress(answer).map_or(0, |packed| packed.len());
    let bytes = size(&mut ours);
    group.bench_function(BenchmarkId::new("ours", format!("{bytes} bytes")), |bencher| {
        bencher.iter(|| ours(black_box(next())));
    });
    for level in [1, 3] {
        let mut state = Compress::new(Compression::new(level), false);
        let mut library = |answer: &[u8]| {
            state.reset();
            let mut packed = Vec::with_capacity(answer.len() / 2 + 64);
            let status = state.compress_vec(answer, &mut packed, FlushCompress::Finish);
            assert_eq!(status.expect("deflate"), Status::StreamEnd, "there was room for all of it");
            packed.write_all(&crc32fast::hash(answer).to_le_bytes()).expect("a vector");
            packed.len() + 14
        };
        let bytes = size(&mut library);
        group.bench_function(
            BenchmarkId::new(format!("zlib-rs, level {level}"), format!("{bytes} bytes")),
            |bencher| bencher.iter(|| library(black_box(next()))),
        );
    }
    group.finish();
}

criterion_group!(benches, gzip);
criterion_main!(benches);
