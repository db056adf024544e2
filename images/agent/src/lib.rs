//! Implements `vnet-agent`: the agent of a node, the launcher that forks it into every light node, the
//! gateway, and process 1 of the built-in VM image.

mod capture;
mod channel;
mod clock;
mod control_messages;
mod ethtool;
mod frames;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gateway;
mod init;
mod launch;
mod netlink;
mod node;
mod os;
mod packet;
mod payload;
mod proto;
mod prove;
mod records;
mod roles;
mod sampler;
mod schedule;
mod station;
mod tap;

use std::process::ExitCode;

/// Exports the items for a binary that adds roles of its own to the agent's: it implements `Role` and calls
/// `main_with` (docs/extending.md).
pub mod extend {
    pub use crate::clock::lab_ns;
    pub use crate::os::Res;
    pub use crate::payload::{Identity, Purpose, read as read_payload};
    pub use crate::proto::{Flow, Item, Pattern, Session, Totals, parse};
    pub use crate::records::{Message, Outcome, received as record_arrival};
    pub use crate::roles::{Arm, Role, add, arm, sends::Sends};
}

const USAGE: &str =
    "usage: vnet-agent launch (--socket PATH | --port PATH) [--log FILE] [--logs DIR]
       vnet-agent (gateway | reservations | station) FILE
       vnet-agent --version";

/// Runs the command line as `main` does, with these roles beside the agent's own; prints an error and returns
/// status 1 if a kind of software has a role already.
pub fn main_with(roles: &'static [(&'static str, extend::Arm)]) -> ExitCode {
    if let Err(text) = extend::add(roles) {
        eprintln!("vnet-agent: {text}");
        return ExitCode::FAILURE;
    }
    main()
}

/// Runs the command line: `launch` serves a lab process, `gateway`, `reservations` and `station` run as
/// software in nodes, `--version` prints the version; other arguments print the usage and return status 2. Under the name
/// `/init` it runs as process 1 of a VM, whatever its arguments.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if std::env::args()
        .next()
        .is_some_and(|name| name == init::NAME)
    {
        return init::run();
    }
    let outcome = match words.as_slice() {
        ["--version"] => {
            println!("vnet-agent {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        ["gateway", file] => gateway::govern(file),
        ["reservations", file] => gateway::serve(file),
        ["station", file] => station::run(file),
        ["launch", rest @ ..] => match options(rest) {
            Some(options) => launch::run(&options),
            None => return usage(),
        },
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("vnet-agent: {text}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// Parses the options of `launch`, of which exactly one must be `--socket` or `--port`; None if they are
/// invalid.
fn options(words: &[&str]) -> Option<launch::Options> {
    let mut options = launch::Options::default();
    for pair in words.chunks(2) {
        match pair {
            ["--socket", path] => options.socket = (*path).to_owned(),
            ["--port", path] => options.port = (*path).to_owned(),
            ["--log", path] => options.log = Some((*path).to_owned()),
            ["--logs", path] => options.logs = Some((*path).to_owned()),
            _ => return None,
        }
    }
    (options.socket.is_empty() != options.port.is_empty()).then_some(options)
}
