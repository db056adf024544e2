//! Starts the program `vnet-agent`. Its code is in the library, since fuzzing uses it too.

fn main() -> std::process::ExitCode {
    vnet_agent::main()
}
