//! Defines the steps by which a client sets up a connection before it may publish or consume.

use crate::roles::amqp::methods;
use crate::roles::amqp::spec::Spec;
use std::collections::VecDeque;

/// A step of the setup. The broker sends the first method of the login's steps, the client that of all
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Login,
    Tune,
    Open,
    Channel,
    PublishExchange,
    ConsumeExchange,
    Queue,
    Bind(usize),
    Prefetch,
    Consume,
    Confirms,
}

impl Step {
    /// Appends the step's request to `out`, nothing for a step that the broker begins; `queue` is the name of
    /// the declared queue.
    pub fn ask(self, out: &mut Vec<u8>, queue: &str, spec: &Spec) {
        match (self, &spec.publish, &spec.consume) {
            (Self::Open, _, _) => methods::open(out, &spec.vhost),
            (Self::Channel, _, _) => methods::channel_open(out),
            (Self::PublishExchange, Some(publish), _) => {
                methods::declare_exchange(out, &publish.exchange);
            }
            (Self::Confirms, Some(_), _) => methods::turn_confirms_on(out),
            (Self::ConsumeExchange, _, Some(consume)) => {
                methods::declare_exchange(out, &consume.exchange);
            }
            (Self::Queue, _, Some(consume)) => methods::declare_queue(out, consume),
            (Self::Bind(place), _, Some(consume)) => {
                methods::bind_queue(out, queue, &consume.exchange.name, &consume.keys[place]);
            }
            (Self::Prefetch, _, Some(consume)) => methods::set_prefetch(out, consume.prefetch),
            (Self::Consume, _, Some(consume)) => {
                methods::consume(out, queue, consume.acknowledge);
            }
            // The broker begins this step, or the specification has no request for it.
            _ => {}
        }
    }
}

/// Returns the steps that the settings `spec` need, in order.
pub fn steps(spec: &Spec) -> VecDeque<Step> {
    let mut steps = VecDeque::from([Step::Login, Step::Tune, Step::Open, Step::Channel]);
    if let Some(consume) = &spec.consume {
        if !consume.exchange.name.is_empty() {
            steps.push_back(Step::ConsumeExchange);
        }
        steps.push_back(Step::Queue);
        steps.extend((0..consume.keys.len()).map(Step::Bind));
        steps.extend([Step::Prefetch, Step::Consume]);
    }
    if let Some(publish) = &spec.publish {
        if !publish.exchange.name.is_empty() {
            steps.push_back(Step::PublishExchange);
        }
        if publish.confirms {
            steps.push_back(Step::Confirms);
        }
    }
    steps
}
