//! Implements the publisher of sampled values: it sends each frame when it is due, from one template with
//! changing fields.

use super::frame::{Content, Stream, Template};
use crate::clock;
use crate::os::Res;
use crate::proto::Item;
use crate::records::Outcome;
use crate::roles::Role;
use crate::roles::iec61850::Sender;
use crate::roles::iec61850::publisher::{self, Outlet, Publisher, only_flow};
use crate::roles::sends::Sends;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct Spec {
    interface: String,
    #[serde(flatten)]
    stream: Stream,
    #[serde(flatten)]
    content: Content,
}

pub fn publisher(item: Item, spec: Spec) -> Res<Box<dyn Role>> {
    spec.stream.check()?;
    let (session, flow, resume) = only_flow(item, "stream")?;
    if flow.start_ns % 1_000_000_000 != 0 {
        return Err(format!(
            "flow {}: start_ns: {}: smpCnt begins with a second; begin with one",
            flow.number, flow.start_ns
        ));
    }
    let sender = Sender::open(&spec.interface)?;
    let template = Template::new(sender.address(), &spec.stream, &spec.content);
    let sends = Sends::with_own_encoding(flow, &session, resume)?;
    Ok(Box::new(Publisher::new(session, sender, sends, template)))
}

impl publisher::Stream for Template {
    const SENDS_AT_THE_END: bool = true;

    fn send_due(&mut self, outlet: &mut Outlet, t0_ns: i64, now: i64, out: &mut Vec<u8>) {
        while let Some(mut message) = outlet.sends.take_due(t0_ns, now, out) {
            let (outcome, error) = outlet.sender.send(self.fill(message.seq));
            let at = clock::lab_ns();
            if outcome == Outcome::Sent {
                (message.sent_ns, message.attempts) = (at, 1);
            }
            outlet.record(&message, outcome, out);
            if let Some(text) = error {
                outlet.session.record("failed", at, &text, out);
            }
        }
    }
}
