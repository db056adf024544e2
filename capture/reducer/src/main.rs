//! The program `vnet-reduce`; the code is in the library, since fuzzing uses it too.

fn main() -> std::process::ExitCode {
    vnet_reduce::main()
}
