//! The program; what it does is in the library, which fuzzing uses too.

fn main() -> std::process::ExitCode {
    vnet_reduce::main()
}
