//! Counters out of netlink dumps: the nodes' ports in the core namespace, the links' root qdiscs wherever they are.

use crate::launch::netns;
use crate::netlink::{LinkCounters, Netlink, QdiscCounters};
use crate::os::Res;
use crate::proto::{SampleLink, SampleNode};
use std::collections::HashMap;

fn open(name: &str) -> Res<Netlink> {
    netns::within(name, Netlink::open)
}

/// The core namespace's ports.
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

    /// One entry a node; nothing where the port is not there (a node that is down).
    pub fn read(&mut self, nodes: &[SampleNode]) -> Res<Vec<Option<LinkCounters>>> {
        let links = self.netlink.links()?;
        let found = self.look(nodes, &links);
        if found
            .iter()
            .zip(nodes)
            .all(|(c, n)| c.is_some() || n.port.is_none())
        {
            return Ok(found);
        }
        // A port was made anew since: its index has changed.
        self.names = self.netlink.names()?;
        Ok(self.look(nodes, &links))
    }

    fn look(
        &self,
        nodes: &[SampleNode],
        links: &HashMap<i32, LinkCounters>,
    ) -> Vec<Option<LinkCounters>> {
        let one = |n: &SampleNode| links.get(self.names.get(n.port.as_ref()?)?).copied();
        nodes.iter().map(one).collect()
    }
}

/// The namespaces that hold links' devices, each with its socket.
pub struct Links {
    places: HashMap<String, (Netlink, HashMap<String, i32>)>,
    wanted: Vec<(String, String)>,
}

impl Links {
    pub fn open(links: &[SampleLink]) -> Res<Self> {
        let mut places = HashMap::new();
        for link in links {
            if !places.contains_key(&link.netns) {
                let mut netlink = open(&link.netns)?;
                let names = netlink.names()?;
                places.insert(link.netns.clone(), (netlink, names));
            }
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
        let wanted = links
            .iter()
            .map(|l| (l.netns.clone(), l.device.clone()))
            .collect();
        Ok(Self { places, wanted })
    }

    /// One entry a link direction, in order. A device without a qdisc counts by itself.
    pub fn read(&mut self) -> Res<Vec<QdiscCounters>> {
        let mut dumps = HashMap::new();
        for (name, (netlink, names)) in &mut self.places {
            let qdiscs = netlink.qdiscs()?;
            let links = netlink.links()?;
            if names.values().any(|index| !links.contains_key(index)) {
                *names = netlink.names()?;
            }
            dumps.insert(name.clone(), (qdiscs, links));
        }
        let look = |(netns, device): &(String, String)| -> Option<QdiscCounters> {
            let index = self.places.get(netns)?.1.get(device)?;
            let (qdiscs, links) = dumps.get(netns)?;
            qdiscs
                .get(index)
                .copied()
                .or_else(|| links.get(index).map(plain))
        };
        Ok(self
            .wanted
            .iter()
            .map(|w| look(w).unwrap_or_default())
            .collect())
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
