//! A node that forwards: the kernel's switches for it, in this namespace.

use crate::os::Res;
use crate::proto::Interface;
use std::fs;

const IPV4: &str = "/proc/sys/net/ipv4";
const IPV6: &str = "/proc/sys/net/ipv6";

/// Turns forwarding on. The plan's routes are the routes: packets may come back another way than they go
/// (no reverse path filter), and nobody is told of a shorter one (no redirects).
pub fn on(interfaces: &[Interface]) -> Res<()> {
    write(IPV4, "ip_forward", "1")?;
    let names = interfaces.iter().map(|i| i.name.as_str());
    for name in ["all", "default"].into_iter().chain(names) {
        write(IPV4, &format!("conf/{name}/rp_filter"), "0")?;
        write(IPV4, &format!("conf/{name}/send_redirects"), "0")?;
    }
    if interfaces.iter().any(Interface::is_ipv6) {
        write(IPV6, "conf/all/forwarding", "1")?;
    }
    Ok(())
}

/// An interface that has IPv6 by the plan: nobody else has its addresses and nobody announces others, so nothing is
/// asked or tried first (RFC 4861, 6.3.7, and 4862, 5.4); and a link that is cut and comes back has them still.
pub fn planned(name: &str) -> Res<()> {
    for (what, value) in [
        ("accept_dad", "0"),
        ("dad_transmits", "0"),
        ("accept_ra", "0"),
        ("router_solicitations", "0"),
        ("accept_redirects", "0"),
        ("keep_addr_on_down", "1"),
    ] {
        write(IPV6, &format!("conf/{name}/{what}"), value).map_err(|e| {
            format!("{name}: its address is of IPv6, which this kernel lacks ({e})")
        })?;
    }
    Ok(())
}

/// Connections that were opened with a code point answer with it.
pub fn reflect() -> Res<()> {
    write(IPV4, "tcp_reflect_tos", "1")
        .map_err(|e| format!("reflect_dscp: {e}; it needs Linux 5.10 or newer"))
}

/// Equal ways are chosen by flow, ports included; kernels without CONFIG_IP_ROUTE_MULTIPATH have no such ways.
pub fn by_flow(ipv6: bool) -> Res<()> {
    let family = if ipv6 { IPV6 } else { IPV4 };
    write(family, "fib_multipath_hash_policy", "1").map_err(|e| {
        format!("routes of several ways: {e}; this kernel has one way a subnet: leave ecmp out")
    })
}

/// Whether the kernel forwards, of each family that the interfaces have.
pub fn read(interfaces: &[Interface]) -> Res<bool> {
    let mut paths = vec![format!("{IPV4}/ip_forward")];
    if interfaces.iter().any(Interface::is_ipv6) {
        paths.push(format!("{IPV6}/conf/all/forwarding"));
    }
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        if text.trim() != "1" {
            return Ok(false);
        }
    }
    Ok(true)
}

fn write(family: &str, name: &str, value: &str) -> Res<()> {
    let path = format!("{family}/{name}");
    fs::write(&path, value).map_err(|e| format!("{path}: {value}: {e}"))
}
