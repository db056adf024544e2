//! The command line of the agent: `launch` serves a lab process, `--version` names the build.

mod channel;
mod clock;
mod ethtool;
mod launch;
mod mqtt;
mod netlink;
mod node;
mod os;
mod payload;
mod proto;
mod prove;
mod sampler;
mod schedule;

use std::process::ExitCode;

const USAGE: &str = "usage: vnet-agent launch --socket PATH [--log PATH] | vnet-agent --version";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--version"] => {
            println!("vnet-agent {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        ["launch", "--socket", socket] => launch::run(socket, None),
        ["launch", "--socket", socket, "--log", log] => launch::run(socket, Some(log)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("vnet-agent: {text}");
            ExitCode::FAILURE
        }
    }
}
