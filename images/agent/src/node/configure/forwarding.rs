//! A node that forwards: the kernel's switches for it, in this namespace.

use crate::os::Res;
use crate::proto::Interface;
use std::fs;

const IPV4: &str = "/proc/sys/net/ipv4";

/// Turns forwarding on. The plan's routes are the routes: packets may come back another way than they go
/// (no reverse path filter), and nobody is told of a shorter one (no redirects).
pub fn on(interfaces: &[Interface]) -> Res<()> {
    write("ip_forward", "1")?;
    let names = interfaces.iter().map(|i| i.name.as_str());
    for name in ["all", "default"].into_iter().chain(names) {
        write(&format!("conf/{name}/rp_filter"), "0")?;
        write(&format!("conf/{name}/send_redirects"), "0")?;
    }
    Ok(())
}

/// Connections that were opened with a code point answer with it.
pub fn reflect() -> Res<()> {
    write("tcp_reflect_tos", "1")
        .map_err(|e| format!("reflect_dscp: {e}; it needs Linux 5.10 or newer"))
}

/// Equal ways are chosen by flow, ports included; kernels without CONFIG_IP_ROUTE_MULTIPATH have no such ways.
pub fn by_flow() -> Res<()> {
    write("fib_multipath_hash_policy", "1").map_err(|e| {
        format!("routes of several ways: {e}; this kernel has one way a subnet: leave ecmp out")
    })
}

/// Whether the kernel forwards.
pub fn read() -> Res<bool> {
    let path = format!("{IPV4}/ip_forward");
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    Ok(text.trim() == "1")
}

fn write(name: &str, value: &str) -> Res<()> {
    let path = format!("{IPV4}/{name}");
    fs::write(&path, value).map_err(|e| format!("{path}: {value}: {e}"))
}
