//! Implements the bandwidth broker of a control centre: it collects the alarms of gateways, and
//! `response_ns` after the first alarm reserves the rates that they request.

use crate::clock;
use crate::control_messages::{Inbox, Outbox};
use crate::os::Res;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::RawFd;

#[derive(Deserialize)]
pub struct Settings {
    listen: u16,
    /// Time from the first alarm to the answer, which models the duration of global adaptation.
    response_ns: i64,
    /// The gateways whose rates this broker reserves, by name.
    gateways: BTreeMap<String, Governed>,
}

#[derive(Deserialize)]
struct Governed {
    at: SocketAddr,
    /// Rate of the gateway's link.
    rate_bps: u64,
    reserved_bps: BTreeMap<String, u64>,
}

/// A message from a gateway: the rates that its flows demand, in bits per second.
#[derive(Deserialize)]
struct Alarm {
    gateway: String,
    demands_bps: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Reservations<'a> {
    reservations_bps: &'a BTreeMap<String, u64>,
}

pub struct Broker {
    settings: Settings,
    inbox: Inbox,
    outboxes: BTreeMap<String, Outbox>,
    demands: BTreeMap<String, BTreeMap<String, u64>>,
    answer_at_ns: Option<i64>,
}

impl Broker {
    pub fn open(settings: Settings) -> Res<Self> {
        let outboxes = settings.gateways.iter();
        Ok(Self {
            inbox: Inbox::open(settings.listen)?,
            outboxes: outboxes
                .map(|(name, g)| (name.clone(), Outbox::new(g.at)))
                .collect(),
            demands: BTreeMap::new(),
            answer_at_ns: None,
            settings,
        })
    }

    pub fn on_message(&mut self) {
        for message in self.inbox.take::<Alarm>() {
            match message {
                Ok(alarm) => self.on_alarm(alarm),
                Err(text) => println!("not understood: {text}"),
            }
        }
    }

    fn on_alarm(&mut self, alarm: Alarm) {
        if !self.settings.gateways.contains_key(&alarm.gateway) {
            return println!("not understood: {} is no gateway of ours", alarm.gateway);
        }
        let now = clock::mono_ns();
        if self.answer_at_ns.is_none() {
            println!(
                "alarm {:.3} {}",
                clock::lab_ns() as f64 / 1e9,
                alarm.gateway
            );
            self.answer_at_ns = Some(now + self.settings.response_ns);
        }
        self.demands.insert(alarm.gateway, alarm.demands_bps);
    }

    /// Returns the monotonic time in ns at which to call `on_time` next; None without an alarm.
    pub fn deadline(&self) -> Option<i64> {
        self.answer_at_ns
    }

    pub fn on_time(&mut self) -> Res<()> {
        if self.answer_at_ns.is_some_and(|at| clock::mono_ns() >= at) {
            self.answer_at_ns = None;
            self.reserve()?;
        }
        super::send(self.outboxes.values_mut());
        Ok(())
    }

    /// Returns the descriptors to poll for reading, and those to poll for writing.
    pub fn fds(&self) -> (Vec<RawFd>, Vec<RawFd>) {
        let unsent = self.outboxes.values().filter_map(Outbox::fd);
        (self.inbox.fds(), unsent.collect())
    }

    /// Raises the reservations of the gateways that have sent alarms to the demanded rates, as far as the
    /// link of each gateway can carry them. Sends each of these gateways all its reservations. Never lowers a
    /// reservation; ignores flows without one.
    fn reserve(&mut self) -> Res<()> {
        for (name, demands) in std::mem::take(&mut self.demands) {
            let known = self.settings.gateways.get_mut(&name);
            let Some((governed, outbox)) = known.zip(self.outboxes.get_mut(&name)) else {
                continue;
            };
            for (flow, demand) in demands {
                let others: u64 = governed
                    .reserved_bps
                    .iter()
                    .filter(|(n, _)| **n != flow)
                    .map(|(_, r)| r)
                    .sum();
                let most = governed.rate_bps.saturating_sub(others);
                if let Some(reserved) = governed.reserved_bps.get_mut(&flow) {
                    *reserved = (*reserved).max(demand.min(most));
                    println!(
                        "reserved {:.3} {name} {flow} {reserved}",
                        clock::lab_ns() as f64 / 1e9
                    );
                }
            }
            outbox.set(&Reservations {
                reservations_bps: &governed.reserved_bps,
            })?;
        }
        Ok(())
    }
}
