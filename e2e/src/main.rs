//! `e2e up` and `e2e down`.
fn main() {}
