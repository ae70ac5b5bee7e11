//! The `spillbox` binary.

fn main() -> std::process::ExitCode {
    spillbox::cli::main()
}
