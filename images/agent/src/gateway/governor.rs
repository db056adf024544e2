//! Implements a gateway: sets the HTB rates of one link from its own measurements and from the messages of
//! neighbouring gateways and of the broker.

use super::flows::{self, Class, Estimator, Flow, State};
use super::messages::{Alarm, Message, Shares};
use super::overlay::{self, Overlay, Shared};
use crate::clock;
use crate::control_messages::{Inbox, Outbox};
use crate::netlink::{HtbClass, Netlink, QdiscCounters};
use crate::os::Res;
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// Changes of a rate by at most 1/1000 of it are ignored.
const NEGLIGIBLE: u64 = 1000;

#[derive(Deserialize)]
pub struct Settings {
    /// The interface whose HTB classes the gateway sets.
    device: String,
    listen: u16,
    period_ns: i64,
    /// Time from the start to the first period, so that gateways do not all measure at the same moment.
    phase_ns: i64,
    weight: f64,
    /// A relative margin. A flow is congested if packets wait, or if its estimated rate exceeds its
    /// reservation by more than this margin. Its wish is then the sum of its estimate, this margin, and the
    /// rate that clears the backlog within a period.
    headroom: f64,
    /// The period over which a flow's highest wish counts: after a burst a high real-time flow keeps that
    /// rate for this long, unless other high real-time flows need it.
    release_ns: i64,
    /// The gateway's name at the broker.
    name: String,
    /// True if the gateway reassigns shares and informs neighbours; otherwise only the broker changes shares.
    cooperate: bool,
    broker: Option<SocketAddr>,
    /// Settings for the classes whose packets the gateway queues itself; None: the kernel queues all packets.
    overlay: Option<overlay::Settings>,
    flows: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    /// Index of the flow's class among the link's leaf classes, in the order of their handles.
    place: usize,
    class: Class,
    group: String,
    minimum_bps: u64,
    /// The flow's highest rate; None: the flow has no highest rate, and the log does not show its state.
    #[serde(default)]
    maximum_bps: Option<u64>,
    /// The rate that the plan reserves for the flow. The flow's class has another rate if the gateway changed
    /// it and was restarted since.
    reserved_bps: u64,
    /// Address of the neighbour upstream, to which the flow's share is sent.
    upstream: Option<SocketAddr>,
    /// The flow's queue in the overlay; None: the kernel queues its packets.
    shared: Option<Shared>,
}

pub struct Gateway {
    settings: Settings,
    flows: Vec<Flow>,
    estimators: Vec<Estimator>,
    /// The last logged state of each flow with a maximum.
    states: Vec<Option<State>>,
    /// For each flow, true once a subscriber has sent a wish; the gateway then passes the wish on to the
    /// neighbour upstream.
    wanted: Vec<bool>,
    /// The wishes of each flow in the last periods.
    wishes: Vec<VecDeque<u64>>,
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
    /// Opens the link's interface, the overlay if there is one, and the port for messages; starts from the
    /// present rates of the link's classes. Returns an error if the interface or a flow's class is absent.
    pub fn open(mut settings: Settings) -> Res<Self> {
        let mut netlink = Netlink::open()?;
        let device = &settings.device;
        let index = *netlink
            .names()?
            .get(device)
            .ok_or_else(|| format!("{device}: there is no such interface"))?;
        let leaves = leaf_classes(netlink.htb_classes(index)?);
        let classes = settings.flows.iter().map(|flow| {
            let rule = format!(
                "{device}: has no HTB class {} for {}",
                flow.place, flow.name
            );
            leaves.get(flow.place).cloned().ok_or(rule)
        });
        let classes = classes.collect::<Res<Vec<_>>>()?;
        let flows = settings.flows.iter().zip(&classes);
        let flows: Vec<Flow> = flows
            .map(|(entry, class)| Flow {
                class: entry.class,
                group: entry.group.clone(),
                minimum: entry.minimum_bps,
                maximum: entry.maximum_bps.unwrap_or(u64::MAX),
                reserved: entry.reserved_bps,
                allowed: u64::MAX,
                assigned: class.rate_bps,
                demand: 0,
                wanted: 0,
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
            wishes: vec![VecDeque::new(); flows.len()],
            states: vec![None; flows.len()],
            wanted: vec![false; flows.len()],
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

    /// Returns the time to the first period, and the length of a period.
    pub fn periods_ns(&self) -> (i64, i64) {
        (self.settings.phase_ns, self.settings.period_ns)
    }

    /// Returns the monotonic time in ns at which the overlay sends its next packet; None without an overlay
    /// or a waiting packet.
    pub fn deadline(&self) -> Option<i64> {
        self.overlay.as_ref().and_then(Overlay::deadline)
    }

    pub fn forward(&mut self) -> Res<()> {
        let now = clock::mono_ns();
        self.overlay.iter_mut().try_for_each(|o| o.forward(now))
    }

    /// Reads messages of neighbours and the broker, and adjusts the shares at once if one has arrived. Logs a
    /// malformed message.
    pub fn on_message(&mut self) -> Res<()> {
        let mut received = false;
        for message in self.inbox.take::<Message>() {
            match message {
                Ok(message) => {
                    self.apply(&message);
                    received = true;
                }
                Err(text) => println!("not understood: {text}"),
            }
        }
        if received { self.act() } else { Ok(()) }
    }

    fn apply(&mut self, message: &Message) {
        for (i, (entry, flow)) in self.settings.flows.iter().zip(&mut self.flows).enumerate() {
            if let Some(bps) = message.shares_bps.get(&entry.name) {
                flow.allowed = *bps;
            }
            if let Some(bps) = message.wanted_bps.get(&entry.name) {
                flow.wanted = (*bps).min(flow.maximum);
                flow.demand = flow.demand.max(flow.wanted);
                self.wanted[i] = true;
                println!("wanted {:.3} {} {}", lab_s(), entry.name, flow.wanted);
            }
            if let Some(bps) = message.reservations_bps.get(&entry.name) {
                flow.reserved = (*bps).min(flow.maximum);
                flow.assigned = flow.reserved;
                flow.allowed = u64::MAX;
            }
        }
    }

    /// Measures the arrivals since the last call, adjusts the shares, and sends messages to neighbours and
    /// the broker. To be called once per period.
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
            // The wanted rate clears the backlog within a period; one or two waiting packets are normal and
            // do not count.
            let waits = is.backlog_packets > 2;
            let more = 1.0 + self.settings.headroom;
            let congested = waits || average > more * flow.reserved as f64;
            if self.settings.flows[i].maximum_bps.is_some() {
                let state = flow.state(average, self.settings.headroom);
                if self.states[i].replace(state) != Some(state) {
                    let (at_s, word) = (lab_s(), state.name());
                    println!("state {at_s:.3} {name} {word} {}", average as u64);
                }
            }
            // The average is the whole demand of a flow that stays within its reservation.
            flow.demand = average as u64;
            flow.wish = if congested {
                let backlog = 8.0 * is.backlog_bytes as f64 * f64::from(u8::from(waits)) / period_s;
                (more * average + backlog) as u64
            } else {
                flow.demand = flow.demand.min(flow.reserved);
                flow.demand
            };
            // A subscriber's wish holds whether or not the sender has followed it.
            flow.demand = flow.demand.max(flow.wanted).min(flow.maximum);
            flow.wish = flow.wish.max(flow.demand).min(flow.maximum);
            flow.kept = highest_wish(&mut self.wishes[i], flow.wish, periods);
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
            let (at_s, name) = (lab_s(), &self.settings.flows[i].name);
            let (before, after) = (class.rate_bps, flow.assigned);
            println!("share {at_s:.3} {name} {before} {after} {}", flow.demand);
        }
        // The kernel rounds rates, so the gateway reads them back.
        let there = self.netlink.htb_classes(self.index)?;
        for (i, class) in self.classes.iter_mut().enumerate() {
            let now = there.iter().find(|c| c.handle == class.handle);
            let counters = class.counters;
            *class = now.cloned().unwrap_or_else(|| class.clone());
            class.counters = counters; // keeps the counters of the period's start
            let overlay = self.overlay.iter_mut();
            overlay.for_each(|o| o.set_rate(i, class.rate_bps));
        }
        Ok(())
    }

    fn publish(&mut self) -> Res<()> {
        let entries = || self.settings.flows.iter().zip(&self.flows);
        let wanted = || entries().zip(&self.wanted).filter(|(_, wanted)| **wanted);
        if self.settings.cooperate {
            for (to, outbox) in &mut self.neighbours {
                let theirs = entries().filter(|(e, _)| e.upstream == Some(*to));
                let shares_bps = theirs.map(|(e, f)| (e.name.as_str(), f.told())).collect();
                let theirs = wanted().filter(|((e, _), _)| e.upstream == Some(*to));
                let wanted = theirs.map(|((e, f), _)| (e.name.as_str(), f.wanted.min(f.assigned)));
                let wanted_bps = wanted.collect();
                outbox.set(&Shares {
                    shares_bps,
                    wanted_bps,
                })?;
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

    /// Sends waiting messages, as far as the connections accept them.
    pub fn send(&mut self) {
        super::send(self.neighbours.values_mut().chain(&mut self.broker));
    }

    /// Returns the descriptors to poll for reading, and those to poll for writing.
    pub fn fds(&self) -> (Vec<RawFd>, Vec<RawFd>) {
        let outboxes = self.neighbours.values().chain(&self.broker);
        let mut read = self.inbox.fds();
        read.extend(self.overlay.as_ref().map(Overlay::fd));
        (read, outboxes.filter_map(Outbox::fd).collect())
    }
}

/// Returns the lab's time in seconds, for the log.
fn lab_s() -> f64 {
    clock::lab_ns() as f64 / 1e9
}

/// Adds the present wish `now`, and returns the highest wish of the last `periods` periods.
fn highest_wish(wishes: &mut VecDeque<u64>, now: u64, periods: usize) -> u64 {
    wishes.push_back(now);
    while wishes.len() > periods {
        wishes.pop_front();
    }
    wishes.iter().copied().max().unwrap_or(now)
}

/// Returns the classes that are not the parent of another class, in the order of their handles.
fn leaf_classes(all: Vec<HtbClass>) -> Vec<HtbClass> {
    let parents: Vec<u32> = all.iter().map(|class| class.parent).collect();
    let mut leaves: Vec<HtbClass> = all
        .into_iter()
        .filter(|class| !parents.contains(&class.handle))
        .collect();
    leaves.sort_by_key(|class| class.handle);
    leaves
}

/// Returns the bits that arrived at a class between two readings: sent, plus dropped (at the mean length),
/// plus the growth of the backlog.
fn arrived(was: &QdiscCounters, is: &QdiscCounters) -> u64 {
    // Counters that became smaller are those of a new queue, which began at zero: they count as no growth.
    let left = is.bytes.saturating_sub(was.bytes);
    let packets = is.packets.saturating_sub(was.packets);
    let dropped = is.dropped.saturating_sub(was.dropped);
    // The kernel counts dropped packets but not their bytes; assume the mean length.
    let mean = left.checked_div(packets).unwrap_or(0);
    let bytes = left + dropped * mean + is.backlog_bytes;
    8 * bytes.saturating_sub(was.backlog_bytes)
}
