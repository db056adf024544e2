//! The command line.

pub const USAGE: &str = "usage: vnet-reduce IN.pcap OUT.parquet [--mqtt-port N]... [--max-flows N]
  IN.pcap        a pcap file (micro- or nanoseconds, either byte order), or - for standard input
  OUT.parquet    the table; docs/contracts.md names its columns
  --mqtt-port N  TCP port that speaks MQTT; may be given several times (default 1883)
  --max-flows N  TCP connections remembered at a time (default 131072)";

/// Enough for any lab; about 50 MB when full.
const MAX_FLOWS: usize = 1 << 17;

#[derive(Debug)]
pub struct Options {
    pub input: String,
    pub output: String,
    pub mqtt_ports: Vec<u16>,
    pub max_flows: usize,
}

/// None where the arguments asked for help or the version only, which is then printed.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let (mut files, mut mqtt_ports, mut max_flows) = (Vec::new(), Vec::new(), MAX_FLOWS);
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => println!("{USAGE}"),
            "--version" => println!("vnet-reduce {}", env!("CARGO_PKG_VERSION")),
            "--mqtt-port" => mqtt_ports.push(number(&argument, arguments.next(), 1, 65535)? as u16),
            "--max-flows" => max_flows = number(&argument, arguments.next(), 1, 1 << 24)?,
            option if option.starts_with("--") => return Err(format!("{option} is no option")),
            _ => {
                files.push(argument);
                continue;
            }
        }
        if matches!(argument.as_str(), "--help" | "-h" | "--version") {
            return Ok(None);
        }
    }
    if mqtt_ports.is_empty() {
        mqtt_ports.push(1883);
    }
    let count = files.len();
    let [input, output] =
        <[String; 2]>::try_from(files).map_err(|_| format!("{count} files given, not 2"))?;
    Ok(Some(Options {
        input,
        output,
        mqtt_ports,
        max_flows,
    }))
}

fn number(option: &str, value: Option<String>, low: usize, high: usize) -> Result<usize, String> {
    let value = value.ok_or_else(|| format!("{option} needs a number"))?;
    let parsed = value
        .parse()
        .ok()
        .filter(|number| (low..=high).contains(number));
    parsed.ok_or_else(|| format!("{option}: {value:?} is not a number from {low} to {high}"))
}
