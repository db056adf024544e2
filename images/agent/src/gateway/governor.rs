//! A gateway: governs the HTB classes of one link by what it measures and by what its neighbours say.

use super::flows::{self, Class, Estimator, Flow};
use super::overlay::{self, Overlay, Shared};
use crate::clock;
use crate::control_messages::{Inbox, Outbox};
use crate::netlink::{HtbClass, Netlink, QdiscCounters};
use crate::os::Res;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// A change by less than one in so many is none.
const NEGLIGIBLE: u64 = 1000;

#[derive(Deserialize)]
pub struct Settings {
    /// Where the HTB is.
    device: String,
    listen: u16,
    period_ns: i64,
    /// From the start to the first period: gateways do not measure in step.
    phase_ns: i64,
    weight: f64,
    /// So much more than its reservation is congestion, and so much more than the estimate is asked for.
    headroom: f64,
    /// What was asked for is kept so long after it is no longer needed, unless others need it.
    release_ns: i64,
    /// Its name, for the broker.
    name: String,
    /// Whether shares are moved here and neighbours told; else the broker alone helps.
    cooperate: bool,
    broker: Option<SocketAddr>,
    /// Where it forwards some classes itself.
    overlay: Option<overlay::Settings>,
    flows: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    /// Of the class that has its packets, among those of the link: from 0, in the order of their handles.
    place: usize,
    class: Class,
    group: String,
    minimum_bps: u64,
    /// As planned; its class may have another rate, where an earlier life of the gateway has set it.
    reserved_bps: u64,
    /// The neighbour from which it comes.
    upstream: Option<SocketAddr>,
    /// How its packets wait in the overlay; they do in the kernel where nothing is said.
    shared: Option<Shared>,
}

/// From a neighbour downstream: what each flow may have. From the broker: what each flow's reservation is.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Heard {
    shares_bps: BTreeMap<String, u64>,
    reservations_bps: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Shares<'a> {
    shares_bps: BTreeMap<&'a str, u64>,
}

/// To the broker: flows that want more than is reserved for them.
#[derive(Serialize)]
struct Alarm<'a> {
    gateway: &'a str,
    demands_bps: BTreeMap<&'a str, u64>,
}

pub struct Gateway {
    settings: Settings,
    flows: Vec<Flow>,
    estimators: Vec<Estimator>,
    /// What each flow asked for in the last periods.
    asked: Vec<VecDeque<u64>>,
    classes: Vec<HtbClass>,
    netlink: Netlink,
    index: i32,
    overlay: Option<Overlay>,
    inbox: Inbox,
    neighbours: BTreeMap<SocketAddr, Outbox>,
    broker: Option<Outbox>,
    measured_ns: i64,
}

impl Gateway {
    /// Goes on from the classes as they are.
    pub fn open(mut settings: Settings) -> Res<Self> {
        let mut netlink = Netlink::open()?;
        let device = &settings.device;
        let index = *netlink
            .names()?
            .get(device)
            .ok_or_else(|| format!("{device}: there is no such interface"))?;
        let there = shares_of(netlink.htb_classes(index)?);
        let classes = settings.flows.iter().map(|flow| {
            let rule = format!(
                "{device}: has no HTB class {} for {}",
                flow.place, flow.name
            );
            there.get(flow.place).cloned().ok_or(rule)
        });
        let classes = classes.collect::<Res<Vec<_>>>()?;
        let flows = settings.flows.iter().zip(&classes);
        let flows: Vec<Flow> = flows
            .map(|(entry, class)| Flow {
                class: entry.class,
                group: entry.group.clone(),
                minimum: entry.minimum_bps,
                reserved: entry.reserved_bps,
                allowed: u64::MAX,
                assigned: class.rate_bps,
                demand: 0,
                wish: 0,
                kept: 0,
            })
            .collect();
        let handles: Vec<u32> = classes.iter().map(|class| class.handle).collect();
        let shared = settings.flows.iter_mut().zip(handles).enumerate();
        let shared =
            shared.filter_map(|(i, (entry, handle))| Some((i, handle, entry.shared.take()?)));
        let shared: Vec<_> = shared.collect();
        let overlay = settings.overlay.as_ref();
        let mut overlay = overlay
            .map(|overlay| Overlay::open(overlay, index, shared.into_iter()))
            .transpose()?;
        for (i, class) in classes.iter().enumerate() {
            overlay
                .iter_mut()
                .for_each(|o| o.set_rate(i, class.rate_bps));
        }
        let upstream = settings.flows.iter().filter_map(|f| f.upstream);
        Ok(Self {
            overlay,
            estimators: flows
                .iter()
                .map(|f| Estimator {
                    weight: settings.weight,
                    average: f.reserved as f64,
                })
                .collect(),
            inbox: Inbox::open(settings.listen)?,
            asked: vec![VecDeque::new(); flows.len()],
            neighbours: upstream.map(|to| (to, Outbox::new(to))).collect(),
            broker: settings.broker.map(Outbox::new),
            measured_ns: clock::mono_ns(),
            flows,
            classes,
            netlink,
            index,
            settings,
        })
    }

    /// From now to the end of the first period, and how long one is.
    pub fn periods_ns(&self) -> (i64, i64) {
        (self.settings.phase_ns, self.settings.period_ns)
    }

    /// When a packet of the overlay leaves next.
    pub fn deadline(&self) -> Option<i64> {
        self.overlay.as_ref().and_then(Overlay::deadline)
    }

    pub fn forward(&mut self) -> Res<()> {
        let now = clock::mono_ns();
        self.overlay.iter_mut().try_for_each(|o| o.forward(now))
    }

    /// What neighbours and the broker say is obeyed at once.
    pub fn on_message(&mut self) -> Res<()> {
        let mut heard = false;
        for message in self.inbox.take::<Heard>() {
            match message {
                Ok(message) => {
                    self.hear(&message);
                    heard = true;
                }
                Err(text) => println!("not understood: {text}"),
            }
        }
        if heard { self.act() } else { Ok(()) }
    }

    fn hear(&mut self, message: &Heard) {
        for (entry, flow) in self.settings.flows.iter().zip(&mut self.flows) {
            if let Some(bps) = message.shares_bps.get(&entry.name) {
                flow.allowed = *bps;
            }
            if let Some(bps) = message.reservations_bps.get(&entry.name) {
                flow.reserved = *bps;
                flow.assigned = *bps;
                flow.allowed = u64::MAX;
            }
        }
    }

    /// Once in a period: what came is measured, and shares follow.
    pub fn on_period(&mut self) -> Res<()> {
        self.measure()?;
        self.act()
    }

    fn measure(&mut self) -> Res<()> {
        let now = clock::mono_ns();
        let period_s = (now - self.measured_ns).max(1) as f64 / 1e9;
        self.measured_ns = now;
        let periods = 1 + (self.settings.release_ns / self.settings.period_ns) as usize;
        let there = self.netlink.htb_classes(self.index)?;
        for (i, flow) in self.flows.iter_mut().enumerate() {
            let name = &self.settings.flows[i].name;
            let found = there.iter().find(|c| c.handle == self.classes[i].handle);
            let mut class = found.cloned().ok_or(format!("{name}: its class is gone"))?;
            let overlay = self.overlay.iter_mut();
            overlay.for_each(|o| o.account(i, name, &mut class.counters));
            let (was, is) = (&self.classes[i].counters, &class.counters);
            let average = self.estimators[i].update(arrived(was, is), period_s);
            // What waits is to be gone after a period; a packet or two always wait.
            let waits = is.backlog_packets > 2;
            let more = 1.0 + self.settings.headroom;
            let congested = waits || average > more * flow.reserved as f64;
            // One that keeps to its reservation needs no more than that.
            flow.demand = average as u64;
            flow.wish = if congested {
                let backlog = 8.0 * is.backlog_bytes as f64 * f64::from(u8::from(waits)) / period_s;
                (more * average + backlog) as u64
            } else {
                flow.demand = flow.demand.min(flow.reserved);
                flow.demand
            };
            flow.kept = most_asked(&mut self.asked[i], flow.wish, periods);
            self.classes[i] = class;
        }
        Ok(())
    }

    fn act(&mut self) -> Res<()> {
        if self.settings.cooperate {
            flows::reassign(&mut self.flows);
        }
        self.set_rates()?;
        self.publish()
    }

    fn set_rates(&mut self) -> Res<()> {
        for (i, flow) in self.flows.iter().enumerate() {
            let class = &mut self.classes[i];
            let whole_bytes = flow.assigned / 8 * 8;
            if whole_bytes.abs_diff(class.rate_bps) * NEGLIGIBLE <= class.rate_bps {
                continue;
            }
            let borrows = class.ceil_bps > class.rate_bps;
            let ceil = if borrows {
                class.ceil_bps.max(flow.assigned)
            } else {
                flow.assigned
            };
            self.netlink.set_htb_rates(class, flow.assigned, ceil)?;
            let at_s = clock::lab_ns() as f64 / 1e9;
            let name = &self.settings.flows[i].name;
            println!(
                "share {at_s:.3} {name} {} {} {}",
                class.rate_bps, flow.assigned, flow.demand
            );
        }
        // As the kernel rounded them.
        let there = self.netlink.htb_classes(self.index)?;
        for (i, class) in self.classes.iter_mut().enumerate() {
            let now = there.iter().find(|c| c.handle == class.handle);
            let counters = class.counters;
            *class = now.cloned().unwrap_or_else(|| class.clone());
            class.counters = counters; // the period's
            let overlay = self.overlay.iter_mut();
            overlay.for_each(|o| o.set_rate(i, class.rate_bps));
        }
        Ok(())
    }

    fn publish(&mut self) -> Res<()> {
        let entries = || self.settings.flows.iter().zip(&self.flows);
        if self.settings.cooperate {
            for (to, outbox) in &mut self.neighbours {
                let theirs = entries().filter(|(e, _)| e.upstream == Some(*to));
                let shares_bps = theirs.map(|(e, f)| (e.name.as_str(), f.assigned)).collect();
                outbox.set(&Shares { shares_bps })?;
            }
        }
        if let Some(broker) = &mut self.broker {
            let wanting =
                entries().filter(|(_, f)| f.class == Class::HighRealTime && f.wish > f.reserved);
            let demands_bps: BTreeMap<_, _> =
                wanting.map(|(e, f)| (e.name.as_str(), f.wish)).collect();
            if !demands_bps.is_empty() {
                let gateway = &self.settings.name;
                broker.set(&Alarm {
                    gateway,
                    demands_bps,
                })?;
            }
        }
        self.send();
        Ok(())
    }

    /// What waits to be said, as far as neighbours take it.
    pub fn send(&mut self) {
        super::send(self.neighbours.values_mut().chain(&mut self.broker));
    }

    /// To be read from, and to be written to.
    pub fn fds(&self) -> (Vec<RawFd>, Vec<RawFd>) {
        let outboxes = self.neighbours.values().chain(&self.broker);
        let mut read = self.inbox.fds();
        read.extend(self.overlay.as_ref().map(Overlay::fd));
        (read, outboxes.filter_map(Outbox::fd).collect())
    }
}

/// The most of the last periods, the one that has ended among them.
fn most_asked(asked: &mut VecDeque<u64>, now: u64, periods: usize) -> u64 {
    asked.push_back(now);
    while asked.len() > periods {
        asked.pop_front();
    }
    asked.iter().copied().max().unwrap_or(now)
}

/// The classes among which a link is shared, by their handles.
fn shares_of(all: Vec<HtbClass>) -> Vec<HtbClass> {
    let below: Vec<u32> = all.iter().map(|class| class.parent).collect();
    let mut leaves: Vec<HtbClass> = all
        .into_iter()
        .filter(|class| !below.contains(&class.handle))
        .collect();
    leaves.sort_by_key(|class| class.handle);
    leaves
}

/// Bits that came to a class: those that left or were dropped, and those that wait now and did not before.
fn arrived(was: &QdiscCounters, is: &QdiscCounters) -> u64 {
    // Queues that were made anew count from zero.
    let left = is.bytes.saturating_sub(was.bytes);
    let packets = is.packets.saturating_sub(was.packets);
    let dropped = is.dropped.saturating_sub(was.dropped);
    // The kernel counts dropped packets, not their bytes: they are as long as the others.
    let mean = left.checked_div(packets).unwrap_or(0);
    let bytes = left + dropped * mean + is.backlog_bytes;
    8 * bytes.saturating_sub(was.backlog_bytes)
}
