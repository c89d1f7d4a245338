//! `flux-resourceset-cli`.

fn main() -> std::process::ExitCode {
    cli::main()
}
