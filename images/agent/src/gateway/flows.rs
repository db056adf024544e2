//! Computes the shares of a link: estimation (algorithm 1) and bandwidth reassignment (algorithm 2) of
//! "Cooperative Congestion Control in Power Grid Communication Networks", as pure functions. Rates are in
//! bits per second, with all headers.

use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    HighRealTime,
    LowRealTime,
    BestEffort,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    pub class: Class,
    /// The flow's group. Flows of one group report on the same place, so their rates are correlated.
    pub group: String,
    /// The share of the flow never falls below this rate.
    pub minimum: u64,
    /// The share of the flow never rises above this rate (CR in the paper); `u64::MAX` without one.
    pub maximum: u64,
    /// The share that the broker has reserved along the flow's path.
    pub reserved: u64,
    /// The flow's limit at a neighbour downstream; `u64::MAX` before the neighbour has sent one.
    pub allowed: u64,
    /// The flow's present share.
    pub assigned: u64,
    pub demand: u64,
    /// The rate that the flow's subscriber wants; 0 before one has sent a wish. It counts as a demand.
    pub wanted: u64,
    /// The rate that would also clear the flow's backlog, with headroom: at least the demand. Wishes are
    /// served after the demands of all flows.
    pub wish: u64,
    /// The highest wish in the gateway's setting `release_ns`. The flow gets this rate as far as the
    /// demands and wishes of the other high real-time flows leave it.
    pub kept: u64,
}

/// The state of a flow (section 5.1.4), from its rate R and its minimum, assured and ceiling rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The rate R is at most the flow's minimum.
    MinimalThreshold,
    /// The rate R is above the flow's minimum, and at most its present share.
    Stable,
    /// The rate R is above the flow's share, and at most its maximum.
    Congested,
    /// The rate R is above the flow's maximum, so the flow violates its registration; the paper names no
    /// state for this case.
    AboveMaximum,
}

impl State {
    /// Returns the state's name in the log.
    pub fn name(self) -> &'static str {
        match self {
            State::MinimalThreshold => "minimal-threshold",
            State::Stable => "stable",
            State::Congested => "congested",
            State::AboveMaximum => "above-maximum",
        }
    }
}

impl Flow {
    /// Returns the state of the flow when it sends at `rate`. Measured rates scatter, so a rate that exceeds
    /// a limit by at most the share `margin` counts as equal to the limit.
    pub fn state(&self, rate: f64, margin: f64) -> State {
        let within = |limit: u64| rate <= (1.0 + margin) * limit as f64;
        if within(self.minimum) {
            State::MinimalThreshold
        } else if within(self.assigned) {
            State::Stable
        } else if within(self.maximum) {
            State::Congested
        } else {
            State::AboveMaximum
        }
    }

    /// Returns the rate that the gateway sends to the flow's neighbour upstream: the flow's share. For a high
    /// real-time flow it is at most the flow's limit downstream, since that limit does not lower its share
    /// here.
    pub fn told(&self) -> u64 {
        match self.class {
            Class::HighRealTime => self.assigned.min(self.allowed),
            _ => self.assigned,
        }
    }

    /// Returns the highest share that `restore` gives back to the flow: the smaller of its reservation and
    /// its limit downstream, at least its minimum.
    fn restorable(&self) -> u64 {
        self.reserved.min(self.allowed).max(self.minimum)
    }
}

/// Recomputes the shares (`assigned`) after demands have changed. High real-time flows return the rate that
/// they no longer need; those that need more take free rate first, then rate of flows of the other classes,
/// best effort first, down to their minimum. Demands are served first, then wishes, then kept rates. The
/// capacity is the sum of all reservations.
pub fn reassign(flows: &mut [Flow]) {
    let capacity = flows.iter().map(|f| f.reserved).sum();
    apply_limits(flows);
    release(flows);
    serve(flows, capacity, |flow| flow.demand);
    serve(flows, capacity, |flow| flow.wish);
    serve(flows, capacity, |flow| flow.kept);
    restore(flows, capacity);
}

/// Raises the share of each high real-time flow to `wanted`, first from free rate, then from its victims down
/// to their minimum (algorithm 2). The share stays lower if both are used up.
fn serve(flows: &mut [Flow], capacity: u64, wanted: impl Fn(&Flow) -> u64) {
    for i in high(flows) {
        let free = capacity.saturating_sub(flows.iter().map(|f| f.assigned).sum());
        let most = wanted(&flows[i]).min(flows[i].maximum);
        let mut needed = most.saturating_sub(flows[i].assigned);
        let mut got = needed.min(free);
        needed -= got;
        for b in victims(flows, i) {
            let taken = needed.min(flows[b].assigned.saturating_sub(flows[b].minimum));
            flows[b].assigned -= taken;
            needed -= taken;
            got += taken;
        }
        flows[i].assigned += got;
    }
}

fn high(flows: &[Flow]) -> Vec<usize> {
    let is_high = |i: &usize| flows[*i].class == Class::HighRealTime;
    (0..flows.len()).filter(is_high).collect()
}

/// Returns the flows from which flow `of` may take rate, in order (M(i) in the paper): best effort before low
/// real time, and in each class correlated flows first.
fn victims(flows: &[Flow], of: usize) -> Vec<usize> {
    let mut found: Vec<usize> = (0..flows.len())
        .filter(|b| flows[*b].class != Class::HighRealTime)
        .collect();
    let rank = |b: &usize| {
        (
            std::cmp::Reverse(flows[*b].class),
            flows[*b].group != flows[of].group,
        )
    };
    found.sort_by_key(rank);
    found
}

/// Cuts the share of each flow other than high real-time to the smaller of its reservation and its limit
/// downstream, but not below its minimum.
fn apply_limits(flows: &mut [Flow]) {
    for flow in flows.iter_mut().filter(|f| f.class != Class::HighRealTime) {
        flow.assigned = flow.assigned.min(flow.restorable());
    }
}

/// Cuts the share of each high real-time flow to the larger of its reservation and its demand, and to its
/// maximum.
fn release(flows: &mut [Flow]) {
    for i in high(flows) {
        let needed = flows[i].demand.max(flows[i].reserved);
        flows[i].assigned = flows[i].assigned.min(needed).min(flows[i].maximum);
    }
}

/// Gives free rate back to the flows other than high real-time, low real time first, up to the smaller of
/// each flow's reservation and its limit downstream, at least its minimum.
fn restore(flows: &mut [Flow], capacity: u64) {
    let mut order: Vec<usize> = (0..flows.len())
        .filter(|b| flows[*b].class != Class::HighRealTime)
        .collect();
    order.sort_by_key(|b| flows[*b].class);
    for b in order {
        let free = capacity.saturating_sub(flows.iter().map(|f| f.assigned).sum());
        flows[b].assigned += free.min(flows[b].restorable().saturating_sub(flows[b].assigned));
    }
}

/// An exponentially weighted moving average of a flow's arrival rate in bits per second.
#[derive(Debug, Clone, Copy)]
pub struct Estimator {
    pub weight: f64,
    pub average: f64,
}

impl Estimator {
    /// Returns the new average after a period in which `bits` arrived.
    pub fn update(&mut self, bits: u64, period_s: f64) -> f64 {
        self.average = (1.0 - self.weight) * self.average + self.weight * bits as f64 / period_s;
        self.average
    }
}

#[cfg(test)]
mod tests {
    use super::Class::{BestEffort, HighRealTime, LowRealTime};
    use super::*;
    use proptest::prelude::*;

    fn flow(class: Class, group: &str, assigned: u64, minimum: u64, demand: u64) -> Flow {
        Flow {
            class,
            group: group.to_owned(),
            minimum,
            maximum: u64::MAX,
            reserved: assigned,
            allowed: u64::MAX,
            assigned,
            demand,
            wanted: 0,
            wish: 0,
            kept: 0,
        }
    }

    fn shares(flows: &[Flow]) -> Vec<u64> {
        flows.iter().map(|f| f.assigned).collect()
    }

    /// The example of section 5.1.4, in Mbit/s: f1 20, f2 10, f3 10, k1 20, k3 5; f1 begins to send 25.
    fn paper_example() -> Vec<Flow> {
        vec![
            flow(HighRealTime, "f", 20, 10, 25),
            flow(LowRealTime, "f", 10, 5, 10),
            flow(BestEffort, "f", 10, 2, 10),
            flow(HighRealTime, "k", 20, 10, 20),
            flow(BestEffort, "k", 5, 2, 5),
        ]
    }

    #[test]
    fn the_papers_example() {
        let mut flows = paper_example();
        reassign(&mut flows);
        assert_eq!(shares(&flows), [25, 10, 5, 20, 5]);
        flows[0].demand = 20;
        reassign(&mut flows);
        assert_eq!(shares(&flows), [20, 10, 10, 20, 5], "it is given back");
    }

    #[test]
    fn victims_are_taken_in_order_and_no_further_than_their_minimum() {
        let mut flows = paper_example();
        let expected = [
            (28, [28, 10, 2, 20, 5]),
            (30, [30, 10, 2, 20, 3]),
            (33, [33, 8, 2, 20, 2]),
            (99, [36, 5, 2, 20, 2]),
        ];
        for (demand, wanted) in expected {
            flows[0].demand = demand;
            reassign(&mut flows);
            assert_eq!(shares(&flows), wanted, "at {demand}");
        }
    }

    #[test]
    fn a_wish_waits_for_the_demands_of_others() {
        let mut flows = paper_example();
        (flows[0].demand, flows[0].wish) = (30, 40);
        reassign(&mut flows);
        assert_eq!(shares(&flows), [36, 5, 2, 20, 2]);
        flows[3].demand = 24;
        reassign(&mut flows);
        assert_eq!(shares(&flows), [32, 5, 2, 24, 2]);
        (flows[0].demand, flows[0].wish, flows[0].kept) = (20, 20, 40);
        (flows[3].demand, flows[3].wish) = (24, 30);
        reassign(&mut flows);
        assert_eq!(shares(&flows), [26, 5, 2, 30, 2], "a kept wish comes last");
    }

    #[test]
    fn a_flow_gets_no_more_than_its_maximum() {
        let mut flows = paper_example();
        (flows[0].maximum, flows[0].demand) = (24, 99);
        (flows[0].wish, flows[0].kept) = (99, 99);
        reassign(&mut flows);
        assert_eq!(shares(&flows), [24, 10, 6, 20, 5]);
    }

    #[test]
    fn the_states_of_a_flow() {
        let mut flow = flow(HighRealTime, "f", 20, 10, 0);
        flow.maximum = 40;
        let states = [
            (4.0, State::MinimalThreshold),
            (10.0, State::MinimalThreshold),
            (10.1, State::Stable),
            (20.0, State::Stable),
            (20.1, State::Congested),
            (40.0, State::Congested),
            (40.1, State::AboveMaximum),
        ];
        for (rate, state) in states {
            assert_eq!(flow.state(rate, 0.0), state, "at {rate}");
        }
        assert_eq!(flow.state(21.9, 0.1), State::Stable, "within the margin");
        flow.assigned = 30;
        assert_eq!(flow.state(25.0, 0.0), State::Stable, "its share has moved");
        flow.maximum = u64::MAX;
        assert_eq!(
            flow.state(1e15, 0.0),
            State::Congested,
            "nothing is too much"
        );
    }

    #[test]
    fn a_neighbours_limit_holds_until_it_is_lifted() {
        let mut flows = paper_example();
        flows[0].demand = 20;
        flows[2].allowed = 4;
        reassign(&mut flows);
        assert_eq!(shares(&flows), [20, 10, 4, 20, 5]);
        flows[0].demand = 23;
        reassign(&mut flows);
        assert_eq!(
            shares(&flows),
            [23, 10, 4, 20, 5],
            "what is free is taken first"
        );
        flows[2].allowed = u64::MAX;
        flows[0].demand = 20;
        reassign(&mut flows);
        assert_eq!(shares(&flows), [20, 10, 10, 20, 5]);
    }

    #[test]
    fn the_estimator_weighs_the_last_period() {
        let mut estimator = Estimator {
            weight: 0.75,
            average: 1000.0,
        };
        assert_eq!(estimator.update(4000, 2.0), 1750.0);
    }

    fn any_flow() -> impl Strategy<Value = Flow> {
        let class = prop_oneof![Just(HighRealTime), Just(LowRealTime), Just(BestEffort)];
        let groups = prop_oneof![Just("a"), Just("b")];
        let above = prop_oneof![Just(u64::MAX / 2), 0..1000u64];
        (class, groups, 0..1000u64, 0..1000u64, 0..3000u64, above).prop_map(
            |(c, g, r, m, d, above)| {
                let mut made = flow(c, g, r.max(m), m, d);
                made.maximum = made.reserved + above;
                made
            },
        )
    }

    proptest! {
        #[test]
        fn rules_hold_through_any_history(
            mut flows in proptest::collection::vec(any_flow(), 1..9),
            history in proptest::collection::vec((0..9usize, 0..3000u64, 0..4), 0..30),
        ) {
            let capacity: u64 = flows.iter().map(|f| f.reserved).sum();
            for (at, value, kind) in history {
                let at = at % flows.len();
                match kind {
                    0 => flows[at].allowed = value,
                    1 => flows[at].demand = value,
                    2 => flows[at].wish = value,
                    _ => flows[at].kept = value,
                }
                let before = flows.clone();
                reassign(&mut flows);
                prop_assert!(shares(&flows).iter().sum::<u64>() <= capacity, "never over the link");
                for (was, is) in before.iter().zip(&flows) {
                    prop_assert!(is.assigned >= is.minimum, "never below its minimum");
                    prop_assert!(is.assigned <= is.maximum, "never above its maximum");
                    if is.class == HighRealTime {
                        prop_assert!(is.assigned >= is.reserved, "a reservation is kept");
                        prop_assert!(is.assigned <= is.demand.max(is.wish).max(is.kept).max(is.reserved), "no more than it needs");
                        prop_assert!(is.assigned >= was.assigned.min(is.demand).min(is.maximum), "one is no victim of another");
                    } else {
                        prop_assert!(is.assigned <= is.restorable(), "a victim gets no more than it had");
                    }
                }
                for i in high(&flows) {
                    let short = flows[i].demand.min(flows[i].maximum) > flows[i].assigned;
                    let left = victims(&flows, i).into_iter().any(|b| flows[b].assigned > flows[b].minimum);
                    prop_assert!(!(short && left), "none waits while another could give");
                    let order = victims(&flows, i);
                    prop_assert!(order.windows(2).all(|w| flows[w[0]].class >= flows[w[1]].class));
                }
            }
            for flow in &mut flows {
                (flow.demand, flow.wish, flow.kept) = (0, 0, 0);
                flow.allowed = u64::MAX;
            }
            reassign(&mut flows);
            prop_assert!(flows.iter().all(|f| f.assigned == f.reserved), "all of it is given back");
        }
    }
}
