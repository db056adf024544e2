//! Reads counters from netlink dumps: of the nodes' ports in the core namespace, and of the links' root
//! qdiscs in any namespace.

use crate::launch::netns;
use crate::netlink::{ClassCounters, LinkCounters, Netlink, Part, QdiscCounters};
use crate::os::Res;
use crate::proto::{SampleClass, SampleLink, SampleNode};
use std::collections::{HashMap, HashSet};

fn open(name: &str) -> Res<Netlink> {
    netns::within(name, Netlink::open)
}

/// Reads the counters of the nodes' ports in the core namespace.
pub struct Ports {
    netlink: Netlink,
    names: HashMap<String, i32>,
}

impl Ports {
    pub fn open(core: &str) -> Res<Self> {
        let mut netlink = open(core)?;
        let names = netlink.names()?;
        Ok(Self { netlink, names })
    }

    /// Returns one entry per node, the sum of the counters of its ports; missing ports (of a node that is
    /// down) add nothing. Finds the ports by name again if one is missing.
    pub fn read(&mut self, nodes: &[SampleNode]) -> Res<Vec<LinkCounters>> {
        let links = self.netlink.links()?;
        let there = |port: &String| {
            let index = self.names.get(port);
            index.is_some_and(|index| links.contains_key(index))
        };
        if !nodes.iter().flat_map(|node| &node.ports).all(there) {
            // A port is missing because it was created again with another index.
            self.names = self.netlink.names()?;
        }
        Ok(nodes.iter().map(|node| self.sum(node, &links)).collect())
    }

    fn sum(&self, node: &SampleNode, links: &HashMap<i32, LinkCounters>) -> LinkCounters {
        let mut sum = LinkCounters::default();
        for port in &node.ports {
            if let Some(one) = self.names.get(port).and_then(|index| links.get(index)) {
                // The port is the peer of the node's interface, so its directions are swapped.
                add(&mut sum, &turned(one));
            }
        }
        sum
    }
}

fn add(sum: &mut LinkCounters, one: &LinkCounters) {
    sum.rx_bytes += one.rx_bytes;
    sum.rx_packets += one.rx_packets;
    sum.tx_bytes += one.tx_bytes;
    sum.tx_packets += one.tx_packets;
    sum.tx_dropped += one.tx_dropped;
    sum.rx_missed += one.rx_missed;
}

fn turned(one: &LinkCounters) -> LinkCounters {
    LinkCounters {
        rx_bytes: one.tx_bytes,
        rx_packets: one.tx_packets,
        tx_bytes: one.rx_bytes,
        tx_packets: one.rx_packets,
        tx_dropped: one.tx_dropped,
        rx_missed: one.rx_missed,
    }
}

type Names = HashMap<String, i32>;
type ByIndex = HashMap<i32, LinkCounters>;

/// Reads counters of links and of nodes' own interfaces, with one netlink socket for each namespace.
pub struct Links {
    places: HashMap<String, (Netlink, Names)>,
    wanted: Vec<SampleLink>,
    dumps: HashMap<String, ByIndex>, // dumps of this sample, from `add_own`
}

/// The counters of one direction of a link: its root qdisc, and its classes in order. A missing qdisc or
/// class has only zeros.
#[derive(Default)]
pub struct LinkSample {
    pub root: QdiscCounters,
    pub classes: Vec<ClassCounters>,
}

impl Links {
    pub fn open(links: &[SampleLink], nodes: &[SampleNode]) -> Res<Self> {
        let mut places: HashMap<String, (Netlink, Names)> = HashMap::new();
        let own = nodes.iter().filter(|node| !node.own.is_empty());
        for netns in links
            .iter()
            .map(|link| &link.netns)
            .chain(own.map(|node| &node.netns))
        {
            if !places.contains_key(netns) {
                let mut netlink = open(netns)?;
                let names = netlink.names()?;
                places.insert(netns.clone(), (netlink, names));
            }
        }
        for link in links {
            let known = places
                .get(&link.netns)
                .is_some_and(|(_, names)| names.contains_key(&link.device));
            if !known {
                return Err(format!(
                    "sample: link {} {}: device {} is not in namespace {}; make it first",
                    link.link, link.direction, link.device, link.netns
                ));
            }
        }
        Ok(Self {
            places,
            wanted: links.to_vec(),
            dumps: HashMap::new(),
        })
    }

    /// Adds the counters of each node's own interfaces to the node's sum in `sums`; missing interfaces add
    /// nothing. Keeps the dumps for `read`.
    pub fn add_own(&mut self, nodes: &[SampleNode], sums: &mut Vec<LinkCounters>) -> Res<()> {
        sums.resize_with(nodes.len(), LinkCounters::default);
        for (node, sum) in nodes.iter().zip(sums) {
            let Some((netlink, names)) = self.places.get_mut(&node.netns) else {
                continue; // no own interfaces
            };
            if node.own.is_empty() {
                continue;
            }
            let links = netlink.links()?;
            let there = |device| names.get(device).is_some_and(|i| links.contains_key(i));
            if !node.own.iter().all(there) {
                *names = netlink.names()?;
            }
            for device in &node.own {
                if let Some(one) = names.get(device).and_then(|index| links.get(index)) {
                    add(sum, one);
                }
            }
            self.dumps.insert(node.netns.clone(), links);
        }
        Ok(())
    }

    /// Returns one entry per link direction, in order; call it after `add_own`. A device without a qdisc
    /// gives the device's own counters; a missing device gives zeros.
    pub fn read(&mut self) -> Res<Vec<LinkSample>> {
        let mut dumps = HashMap::new();
        for (name, (netlink, names)) in &mut self.places {
            let (roots, parts) = netlink.queues(&parts(&self.wanted, name, names))?;
            let links = match self.dumps.remove(name) {
                Some(links) => links,
                None => netlink.links()?,
            };
            if names.values().any(|index| !links.contains_key(index)) {
                *names = netlink.names()?;
            }
            dumps.insert(name.clone(), (roots, links, parts));
        }
        let look = |wanted: &SampleLink| -> Option<LinkSample> {
            let index = *self.places.get(&wanted.netns)?.1.get(&wanted.device)?;
            let (roots, links, parts) = dumps.get(&wanted.netns)?;
            let root = roots
                .get(&index)
                .copied()
                .or_else(|| links.get(&index).map(plain))?;
            let classes = wanted
                .classes
                .iter()
                .map(|class| parts.get(&part(index, class)).copied().unwrap_or_default())
                .collect();
            Some(LinkSample { root, classes })
        };
        Ok(self
            .wanted
            .iter()
            .map(|w| look(w).unwrap_or_default())
            .collect())
    }
}

fn parts(wanted: &[SampleLink], netns: &str, names: &HashMap<String, i32>) -> HashSet<Part> {
    wanted
        .iter()
        .filter(|link| link.netns == netns)
        .filter_map(|link| Some((*names.get(&link.device)?, link)))
        .flat_map(|(index, link)| link.classes.iter().map(move |class| part(index, class)))
        .collect()
}

fn part(index: i32, class: &SampleClass) -> Part {
    Part {
        index,
        handle: class.handle,
        tin: class.tin,
        marked_at: class.marked_at,
    }
}

fn plain(c: &LinkCounters) -> QdiscCounters {
    QdiscCounters {
        bytes: c.tx_bytes,
        packets: c.tx_packets,
        dropped: c.tx_dropped,
        ..QdiscCounters::default()
    }
}
