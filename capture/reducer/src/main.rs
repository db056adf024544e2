//! Starts the program `vnet-reduce`. Its code is in the library, since fuzzing uses it too.

fn main() -> std::process::ExitCode {
    vnet_reduce::main()
}
