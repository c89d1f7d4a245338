//! `frs`: the same under a short name.

fn main() -> std::process::ExitCode {
    cli::main()
}
