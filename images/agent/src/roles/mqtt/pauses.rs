//! Decides when a client must be subscribed, from the planned times without a subscription.

/// The planned times without the subscription, as Unix nanoseconds once `go` has set t0.
#[derive(Default)]
pub struct Pauses {
    spans: Vec<(i64, i64)>,
}

impl Pauses {
    /// Creates the plan from pairs (begin, end), offsets from t0 that are sorted and do not overlap.
    pub fn new(spans: Vec<(i64, i64)>) -> Self {
        Self { spans }
    }

    pub fn go(&mut self, t0_ns: i64) {
        for (begin, end) in &mut self.spans {
            *begin = begin.saturating_add(t0_ns);
            *end = end.saturating_add(t0_ns);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns whether the plan wants the client to be subscribed at `now`.
    pub fn wants(&self, now: i64) -> bool {
        !self
            .spans
            .iter()
            .any(|(begin, end)| (*begin..*end).contains(&now))
    }

    /// Returns the first planned change after `now`; None if no change follows.
    pub fn next(&self, now: i64) -> Option<i64> {
        let all = self.spans.iter().flat_map(|(begin, end)| [*begin, *end]);
        all.filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_subscribed_but_for_its_pauses() {
        let mut pauses = Pauses::new(vec![(10, 20), (30, i64::MAX)]);
        pauses.go(1000);
        let wanted: Vec<i64> = (1000..1040).filter(|now| pauses.wants(*now)).collect();
        let expected: Vec<i64> = (1000..1010).chain(1020..1030).collect();
        assert_eq!(wanted, expected);
        let mut changes = Vec::new();
        let mut now = 1000;
        while let Some(at) = pauses.next(now).filter(|at| *at < i64::MAX) {
            changes.push(at);
            now = at;
        }
        assert_eq!(changes, [1010, 1020, 1030]);
        assert!(Pauses::default().wants(5) && Pauses::default().next(5).is_none());
    }
}
