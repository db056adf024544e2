//! Defines the entry points for fuzzing, which parse bytes of a peer, a program or the lab process as a
//! node does, without sending or opening anything.

use crate::{frames, netlink, node, payload, proto, prove, roles, schedule};

/// Parses bytes from outside the node; the first byte selects the parser.
pub fn bytes_of_others(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else {
        return;
    };
    match which {
        0 => _ = payload::read(bytes),
        1 => frames::fuzz(bytes),
        2 => prove::fuzz(bytes),
        3 => netlink::fuzz(bytes),
        4 => node::fuzz(bytes),
        which => roles::fuzz(which - 5, bytes),
    }
}

/// Parses JSON requests of the lab process, and computes the schedules in them.
pub fn requests(text: &[u8]) {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(text) else {
        return;
    };
    macro_rules! read {
        ($($kind:ty),*) => { $(_ = proto::parse::<$kind>("fuzz", value.clone());)* };
    }
    read!(
        proto::CreateNode,
        proto::Network,
        proto::Software,
        proto::Sample,
        proto::LinkProbe,
        proto::SandboxSpec
    );
    let Ok(item) = proto::parse::<proto::Item>("fuzz", value) else {
        return;
    };
    for flow in item.flows {
        if let Some(schedule) = flow.schedule
            && schedule::check(&schedule).is_ok()
        {
            let mut ticks = schedule::Ticks::new(schedule, flow.start_ns, flow.stop_ns);
            for _ in 0..64 {
                _ = ticks.take_due(i64::MAX);
            }
        }
    }
}
