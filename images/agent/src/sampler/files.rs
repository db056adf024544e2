//! Reads counters from files that stay open: the nodes' cgroups, and the host's /proc.

use super::batch::Batch;
use crate::os::Res;
use crate::proto::SampleNode;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Reads a small file from its beginning without opening it again; None if it cannot be read.
fn reread<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    let n = file.read_at(buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..n]).ok()
}

/// Parses CPU time in nanoseconds, from cgroup v2's cpu.stat (microseconds) or v1's cpuacct.usage
/// (nanoseconds); 0 if the text has none.
fn cpu_ns(text: &str) -> u64 {
    let first = |s: &str| {
        s.split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0u64)
    };
    match text.lines().find_map(|l| l.strip_prefix("usage_usec ")) {
        Some(micros) => first(micros) * 1000,
        None => first(text),
    }
}

/// The cgroup files of all nodes, which are read together.
pub struct Cgroups {
    batch: Batch,
    nodes: Vec<Places>,
}

/// The indices of a node's files in the batch.
struct Places {
    cpu: Range<usize>,
    memory: Option<usize>,
}

impl Cgroups {
    pub fn open(specs: &[SampleNode]) -> Res<Self> {
        let mut files = Vec::new();
        let mut nodes = Vec::new();
        for spec in specs {
            let first = files.len();
            for path in spec.cpu.iter().chain(&spec.memory) {
                files.push(File::open(path).map_err(|e| {
                    format!(
                        "sample: node {}: {path}: {e}; the cgroup must exist",
                        spec.node
                    )
                })?);
            }
            let cpu = first..first + spec.cpu.len();
            nodes.push(Places {
                memory: spec.memory.as_ref().map(|_| cpu.end),
                cpu,
            });
        }
        Ok(Self {
            batch: Batch::new(files),
            nodes,
        })
    }

    /// Returns CPU time in nanoseconds and memory in bytes of each node, in order; 0 if its cgroup has gone
    /// or has no such file.
    pub fn read(&mut self) -> impl Iterator<Item = (u64, u64)> {
        self.batch.read();
        let text = |place: usize| self.batch.text(place);
        self.nodes.iter().map(move |node| {
            let cpu = node.cpu.clone().filter_map(text).map(cpu_ns).sum();
            let memory = node
                .memory
                .and_then(text)
                .and_then(|t| t.trim().parse().ok());
            (cpu, memory.unwrap_or(0))
        })
    }
}

/// Reads the load of the host from /proc; under User-Mode Linux, that of the guest.
pub struct Host {
    stat: File,
    load: File,
    memory: File,
    cores: usize,
    tick_ns: u64,
}

impl Host {
    pub fn open() -> Res<Self> {
        let open = |path: &str| {
            File::open(path).map_err(|e| format!("sample: {path}: {e}; /proc must be mounted"))
        };
        // SAFETY: plain number.
        let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
        Ok(Self {
            stat: open("/proc/stat")?,
            load: open("/proc/loadavg")?,
            memory: open("/proc/meminfo")?,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            tick_ns: 1_000_000_000 / hz,
        })
    }

    /// Returns the fields of a line of host.csv after the time: eight CPU times in ns, the load average of a
    /// minute, available memory in bytes and the number of cores. An error if /proc/stat cannot be read.
    pub fn read(&mut self) -> Res<String> {
        let mut buffer = [0u8; 4096];
        let stat = reread(&self.stat, &mut buffer).ok_or("sample: /proc/stat cannot be read")?;
        let line = stat.lines().next().unwrap_or("").to_owned();
        let mut times: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .filter_map(|n| n.parse().ok())
            .collect();
        times.resize(8, 0);
        let times: Vec<String> = times
            .iter()
            .map(|t| (t * self.tick_ns).to_string())
            .collect();
        let load = reread(&self.load, &mut buffer)
            .and_then(|t| t.split(' ').next())
            .unwrap_or("0")
            .to_owned();
        let memory = reread(&self.memory, &mut buffer).map_or(0, available);
        Ok(format!(
            "{},{load},{memory},{}",
            times.join(","),
            self.cores
        ))
    }
}

fn available(meminfo: &str) -> u64 {
    let line = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line
        .and_then(|l| l.split_whitespace().next())
        .and_then(|n| n.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cgroup_layouts_give_nanoseconds() {
        assert_eq!(
            cpu_ns("usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n"),
            1_500_000
        );
        assert_eq!(cpu_ns("123456789\n"), 123_456_789);
    }

    #[test]
    fn the_host_is_described() {
        let text = Host::open().unwrap().read().unwrap();
        let fields: Vec<&str> = text.split(',').collect();
        assert_eq!(fields.len(), 11, "{text}");
        assert!(
            fields[3].parse::<u64>().unwrap() > 0 && fields[9].parse::<u64>().unwrap() > 1 << 20
        );
    }
}
