//! What fuzzing calls: bytes of a peer, a program or the lab process, taken as a node takes them. Nothing is sent or opened.

use crate::{frames, netlink, node, payload, proto, prove, roles, schedule};

/// The first byte says whose the rest is.
pub fn bytes_of_others(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else {
        return;
    };
    match which % 11 {
        0 => _ = payload::read(bytes),
        1 => frames::fuzz(bytes),
        2 => prove::fuzz(bytes),
        3 => netlink::fuzz(bytes),
        4 => node::fuzz(bytes),
        which => roles::fuzz(which - 5, bytes),
    }
}

/// JSON of the lab process: the structures of its requests, and the times of the schedules in them.
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
