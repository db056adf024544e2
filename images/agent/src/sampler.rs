//! Samples counters of all nodes, links and the host at a fixed interval into CSV files, in a process of its
//! own.

mod batch;
mod counters;
mod files;

use crate::clock;
use crate::os::{self, Res};
use crate::proto::Sample;
use counters::{Links, Ports};
use files::{Cgroups, Host};
use serde_json::json;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;

/// Samples until the process is killed. Calls `send` with {"ok": true} once all files are open; after an
/// error, returns it as a line of JSON.
pub fn run(spec: &Sample, send: &dyn Fn(&str)) -> String {
    os::reduce_timer_slack();
    let mut sampler = match Sampler::open(spec) {
        Ok(sampler) => sampler,
        Err(text) => return format!("{}\n", json!({"ok": false, "error": text})),
    };
    send(&format!("{}\n", json!({"ok": true})));
    match sampler.sample_for_ever() {
        Ok(never) => never,
        Err(text) => format!("{}\n", json!({"ok": false, "error": text})),
    }
}

struct Sampler<'a> {
    spec: &'a Sample,
    cgroups: Cgroups,
    ports: Option<Ports>,
    links: Links,
    host: Host,
    nodes_csv: Csv,
    links_csv: Csv,
    classes_csv: Option<Csv>, // if a link has a queue with classes
    host_csv: Csv,
}

impl<'a> Sampler<'a> {
    fn open(spec: &'a Sample) -> Res<Self> {
        if spec.interval_ns <= 0 {
            return Err(format!(
                "sample: interval_ns {} must be above 0",
                spec.interval_ns
            ));
        }
        let cgroups = Cgroups::open(&spec.nodes)?;
        let ports = spec.core.as_deref().map(Ports::open).transpose()?;
        let host = Host::open()?;
        let csv = |name: &str, header: &str| Csv::open(&format!("{}/{name}", spec.dir), header);
        Ok(Self {
            spec,
            cgroups,
            ports,
            links: Links::open(&spec.links, &spec.nodes)?,
            host,
            nodes_csv: csv(
                "nodes.csv",
                "t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes",
            )?,
            links_csv: csv(
                "links.csv",
                "t_ns,link,direction,bytes,packets,dropped,overlimits,backlog_bytes,backlog_packets",
            )?,
            classes_csv: spec
                .links
                .iter()
                .any(|link| !link.classes.is_empty())
                .then(|| {
                    csv(
                        "classes.csv",
                        "t_ns,link,direction,class,bytes,packets,dropped,overlimits,marked,backlog_bytes,backlog_packets",
                    )
                })
                .transpose()?,
            host_csv: csv(
                "host.csv",
                "t_ns,user_ns,nice_ns,system_ns,idle_ns,iowait_ns,irq_ns,softirq_ns,steal_ns,load1,memory_available_bytes,cores",
            )?,
        })
    }

    /// Samples at once, then at multiples of the interval from the start; skips times that have passed
    /// meanwhile. Returns only with an error.
    fn sample_for_ever(&mut self) -> Res<String> {
        let mut next = clock::mono_ns();
        loop {
            self.sample()?;
            let now = clock::mono_ns();
            while next <= now {
                next += self.spec.interval_ns;
            }
            sleep_until(next);
        }
    }

    fn sample(&mut self) -> Res<()> {
        let mut counters = match &mut self.ports {
            Some(ports) => ports.read(&self.spec.nodes)?,
            None => Vec::new(),
        };
        self.links.add_own(&self.spec.nodes, &mut counters)?;
        // All nodes get the same time, since their counters are read together.
        let t = clock::lab_ns();
        for (i, (cpu, memory)) in self.cgroups.read().enumerate() {
            let c = counters.get(i).copied().unwrap_or_default();
            let (name, rx, rxp, tx, txp) = (
                &self.spec.nodes[i].node,
                c.rx_bytes,
                c.rx_packets,
                c.tx_bytes,
                c.tx_packets,
            );
            self.nodes_csv.line(format_args!(
                "{t},{name},{cpu},{rx},{rxp},{tx},{txp},{memory}"
            ));
        }
        let t = clock::lab_ns();
        for (link, sample) in self.spec.links.iter().zip(self.links.read()?) {
            let (name, direction, q) = (&link.link, &link.direction, sample.root);
            if let Some(csv) = &mut self.classes_csv {
                for (class, c) in link.classes.iter().zip(sample.classes) {
                    let (class, q, marked) = (&class.class, c.queue, c.marked);
                    csv.line(format_args!(
                        "{t},{name},{direction},{class},{},{},{},{},{marked},{},{}",
                        q.bytes,
                        q.packets,
                        q.dropped,
                        q.overlimits,
                        q.backlog_bytes,
                        q.backlog_packets
                    ));
                }
            }
            self.links_csv.line(format_args!(
                "{t},{name},{direction},{},{},{},{},{},{}",
                q.bytes, q.packets, q.dropped, q.overlimits, q.backlog_bytes, q.backlog_packets
            ));
        }
        let host = self.host.read()?;
        self.host_csv
            .line(format_args!("{},{host}", clock::lab_ns()));
        self.nodes_csv.flush()?;
        self.links_csv.flush()?;
        if let Some(csv) = &mut self.classes_csv {
            csv.flush()?;
        }
        self.host_csv.flush()
    }
}

fn sleep_until(at_ns: i64) {
    let at = libc::timespec {
        tv_sec: at_ns / 1_000_000_000,
        tv_nsec: at_ns % 1_000_000_000,
    };
    // SAFETY: the timespec is valid. The call is repeated after an interruption.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &at,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

/// A CSV file, which each sample extends with one write.
struct Csv {
    path: String,
    file: File,
    text: String,
}

impl Csv {
    fn open(path: &str, header: &str) -> Res<Self> {
        let fail = |e: std::io::Error| {
            format!("sample: {path}: {e}; the directory must exist and be writable")
        };
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(fail)?;
        let fresh = file.metadata().map_err(fail)?.len() == 0;
        let mut csv = Self {
            path: path.to_owned(),
            file,
            text: String::new(),
        };
        if fresh {
            csv.line(format_args!("{header}"));
            csv.flush()?;
        }
        Ok(csv)
    }

    fn line(&mut self, line: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        writeln!(self.text, "{line}").expect("memory");
    }

    fn flush(&mut self) -> Res<()> {
        let outcome = self.file.write_all(self.text.as_bytes());
        self.text.clear();
        outcome.map_err(|e| format!("sample: {}: {e}; samples are lost", self.path))
    }
}
