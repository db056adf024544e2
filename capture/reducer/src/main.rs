//! The reducer's program; the library holds the code, since fuzzing uses it too.

fn main() -> std::process::ExitCode {
    vnet_reduce::main()
}
