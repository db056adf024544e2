//! Parses the reducer's command line.

pub const USAGE: &str =
    "usage: vnet-reduce IN.pcap OUT.parquet [--app NAME=PORT[,PORT]...]... [--connections FILE]
                   [--max-flows N]
  IN.pcap                a pcap or pcapng file, or - for standard input
  OUT.parquet            the table; docs/contracts/packets.md names its columns
  --app NAME=PORT,...    the ports of an application protocol, in place of its usual ones
  --connections FILE     another table, one row a TCP connection
  --max-flows N          TCP connections remembered at a time (default 131072)";

use crate::dissect::Ports;

/// Default number of connections in the flow table, enough for any lab; about 50 MB when full.
const MAX_FLOWS: usize = 1 << 17;

pub struct Options {
    pub input: String,
    pub output: String,
    pub connections: Option<String>,
    pub ports: Ports,
    pub max_flows: usize,
}

/// Parses the arguments; returns None after printing help or the version, and an error text for invalid
/// arguments.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let (mut files, mut apps, mut max_flows) = (Vec::new(), Vec::new(), MAX_FLOWS);
    let mut connections = None;
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => println!("{USAGE}"),
            "--version" => println!("vnet-reduce {}", env!("CARGO_PKG_VERSION")),
            "--connections" => {
                connections = Some(arguments.next().ok_or("--connections needs a file")?);
            }
            "--app" => apps.push(app(arguments.next())?),
            "--max-flows" => max_flows = number(&argument, arguments.next(), 1, 1 << 24)?,
            option if option.starts_with("--") => return Err(format!("{option}: unknown option")),
            _ => {
                files.push(argument);
                continue;
            }
        }
        if matches!(argument.as_str(), "--help" | "-h" | "--version") {
            return Ok(None);
        }
    }
    let count = files.len();
    let [input, output] =
        <[String; 2]>::try_from(files).map_err(|_| format!("{count} files given, not 2"))?;
    Ok(Some(Options {
        input,
        output,
        connections,
        ports: Ports::new(&apps)?,
        max_flows,
    }))
}

/// Parses `NAME=PORT[,PORT]...` of option `--app` into name and ports; does not check the name.
fn app(value: Option<String>) -> Result<(String, Vec<u16>), String> {
    let value = value.ok_or("--app needs NAME=PORT[,PORT]...")?;
    let (name, ports) = value
        .split_once('=')
        .ok_or_else(|| format!("--app {value}: write NAME=PORT[,PORT]..."))?;
    let port = |text: &str| number("--app", Some(text.into()), 1, 65535).map(|port| port as u16);
    let ports = ports.split(',').map(port).collect::<Result<_, _>>()?;
    Ok((name.into(), ports))
}

fn number(option: &str, value: Option<String>, low: usize, high: usize) -> Result<usize, String> {
    let value = value.ok_or_else(|| format!("{option} needs a number"))?;
    let parsed = value
        .parse()
        .ok()
        .filter(|number| (low..=high).contains(number));
    parsed.ok_or_else(|| format!("{option}: {value:?} is not a number from {low} to {high}"))
}
