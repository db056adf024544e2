//! Sets the kernel parameters for forwarding, ECMP, DSCP reflection and planned IPv6 addresses, in this
//! process's network namespace.

use crate::os::Res;
use crate::proto::Interface;
use std::fs;

const IPV4: &str = "/proc/sys/net/ipv4";
const IPV6: &str = "/proc/sys/net/ipv6";

/// Enables forwarding by the plan's routes alone: without a reverse path filter, since paths may be
/// asymmetric, and without redirects, which would announce shorter paths. Enables IPv6 forwarding only if an
/// interface has an IPv6 address.
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

/// Disables autoconfiguration on an interface whose IPv6 addresses come from the plan: duplicate address
/// detection (RFC 4862, 5.4), router solicitation (RFC 4861, 6.3.7), router advertisements and redirects. The
/// addresses stay when a link is cut and returns.
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

/// Makes TCP servers of the node answer with the DSCP of the client's SYN.
pub fn reflect() -> Res<()> {
    write(IPV4, "tcp_reflect_tos", "1")
        .map_err(|e| format!("reflect_dscp: {e}; it needs Linux 5.10 or newer"))
}

/// Makes the kernel choose ECMP paths by flow, including ports; needs CONFIG_IP_ROUTE_MULTIPATH.
pub fn by_flow(ipv6: bool) -> Res<()> {
    let family = if ipv6 { IPV6 } else { IPV4 };
    write(family, "fib_multipath_hash_policy", "1").map_err(|e| {
        format!("routes of several ways: {e}; this kernel has one way a subnet: leave ecmp out")
    })
}

/// Returns whether the kernel forwards in every address family of the interfaces.
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
