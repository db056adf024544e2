//! Renames a VM's interfaces to the plan's names by their MACs, because the guest's kernel numbers them in
//! the order in which it finds them.

use super::{call, flags, read_mac};
use crate::ethtool::request;
use crate::os::Res;
use crate::proto::Interface;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The longest time in which a NIC in passthrough may appear: its driver must load and reset it.
const DRIVERS: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// Renames every device that has a planned MAC under another name; a device that has the planned name but not
/// the MAC is renamed too. Waits up to `DRIVERS` for missing devices; those that do not appear are no error
/// here.
pub fn by_mac(sock: &OwnedFd, interfaces: &[Interface]) -> Res<()> {
    if interfaces.iter().all(|i| is(sock, &i.name, &i.mac)) {
        return Ok(());
    }
    let names = wait_for(sock, interfaces);
    let moves = moves(interfaces, &names, |name| read_mac(sock, name).ok());
    // Two devices may swap names, so each device first gets an unused name.
    for (i, (from, _)) in moves.iter().enumerate() {
        rename(sock, from, &format!("vnet-tmp{i}"))?;
    }
    for (i, (_, to)) in moves.iter().enumerate() {
        rename(sock, &format!("vnet-tmp{i}"), to)?;
    }
    Ok(())
}

/// Waits until each planned interface has a device with its MAC, at most `DRIVERS`. If there are as many
/// devices as interfaces, a device with the planned name suffices. Returns the names of all devices.
fn wait_for(sock: &OwnedFd, interfaces: &[Interface]) -> Vec<String> {
    let deadline = Instant::now() + DRIVERS;
    loop {
        let names = names();
        let enough = names.len() >= interfaces.len();
        let there = |i: &Interface| {
            let named = enough && names.contains(&i.name);
            named || names.iter().any(|n| is(sock, n, &i.mac))
        };
        if interfaces.iter().all(there) || Instant::now() > deadline {
            return names;
        }
        std::thread::sleep(POLL);
    }
}

fn is(sock: &OwnedFd, name: &str, mac: &str) -> bool {
    read_mac(sock, name).is_ok_and(|m| m == mac.to_lowercase())
}

/// Returns (present name, new name) of all devices that must be renamed. The holder of a planned MAC gets the
/// planned name; another device with that name, if it has no planned MAC, gets the suffix `-other`.
fn moves(
    interfaces: &[Interface],
    names: &[String],
    mac: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let macs: Vec<(&String, String)> = names.iter().filter_map(|n| Some((n, mac(n)?))).collect();
    let holder = |i: &Interface| {
        let wanted = i.mac.to_lowercase();
        let mut of_mac = macs.iter().filter(|(_, m)| *m == wanted).map(|(n, _)| *n);
        // A bridge or VLAN device has the same MAC as its port, so the device with the right name is taken.
        if of_mac.clone().any(|n| *n == i.name) {
            return None;
        }
        of_mac.next().cloned()
    };
    let mut moves: Vec<(String, String)> = interfaces
        .iter()
        .filter_map(|i| Some((holder(i)?, i.name.clone())))
        .collect();
    let strangers: Vec<String> = moves
        .iter()
        .map(|(_, to)| to)
        .filter(|to| names.contains(to) && !moves.iter().any(|(from, _)| from == *to))
        .cloned()
        .collect();
    moves.extend(
        strangers
            .into_iter()
            .map(|n| (n.clone(), format!("{n}-other"))),
    );
    moves
}

/// Renames a device; takes it down first, as the kernel requires.
fn rename(sock: &OwnedFd, from: &str, to: &str) -> Res<()> {
    let what = format!("{from}: cannot be renamed to {to}");
    let mut ifr = request(from);
    ifr.ifr_ifru.ifru_flags = flags(sock, from)? & !(libc::IFF_UP as i16);
    call(sock, &mut ifr, libc::SIOCSIFFLAGS, &what)?;
    let mut ifr = request(from);
    ifr.ifr_ifru.ifru_newname = request(to).ifr_name;
    call(sock, &mut ifr, libc::SIOCSIFNAME, &what)
}

/// Returns the names of all devices of this namespace except lo.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: the list is read up to its end mark and freed once.
    unsafe {
        let list = libc::if_nameindex();
        let mut at = list;
        while !at.is_null() && (*at).if_index != 0 {
            names.push(CStr::from_ptr((*at).if_name).to_string_lossy().into_owned());
            at = at.add(1);
        }
        if !list.is_null() {
            libc::if_freenameindex(list);
        }
    }
    names.retain(|n| n != "lo");
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, mac: &str) -> Interface {
        Interface {
            name: name.to_owned(),
            address: None,
            prefix: 0,
            mtu: 1500,
            mac: mac.to_owned(),
            second: None,
            second_prefix: 0,
        }
    }

    fn planned(wanted: &[(&str, &str)], present: &[(&str, &str)]) -> Vec<(String, String)> {
        let wanted: Vec<Interface> = wanted.iter().map(|(n, m)| interface(n, m)).collect();
        let names: Vec<String> = present.iter().map(|(n, _)| (*n).to_owned()).collect();
        moves(&wanted, &names, |name| {
            present
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, m)| (*m).to_owned())
        })
    }

    fn pair(a: &str, b: &str) -> (String, String) {
        (a.to_owned(), b.to_owned())
    }

    #[test]
    fn devices_change_places() {
        let wanted = [("eth0", "02:AA"), ("eth1", "02:bb")];
        let present = [("eth0", "02:bb"), ("eth1", "02:aa")];
        let expected = [pair("eth1", "eth0"), pair("eth0", "eth1")];
        assert_eq!(planned(&wanted, &present), expected);
    }

    #[test]
    fn an_unrelated_device_gives_way() {
        let expected = [pair("enp1s0", "eth0"), pair("eth0", "eth0-other")];
        let present = [("eth0", "02:cc"), ("enp1s0", "02:aa")];
        assert_eq!(planned(&[("eth0", "02:aa")], &present), expected);
    }

    #[test]
    fn a_device_with_name_and_mac_stays_though_a_bridge_shares_the_mac() {
        let present = [("br0", "02:aa"), ("eth0", "02:aa")];
        assert_eq!(planned(&[("eth0", "02:aa")], &present), []);
    }

    #[test]
    fn an_unknown_mac_moves_nothing() {
        assert_eq!(planned(&[("eth0", "02:aa")], &[("eth0", "02:cc")]), []);
    }
}
