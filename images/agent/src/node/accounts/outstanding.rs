//! Tracks the due messages of one flow that a program has not recorded yet.

use crate::proto::Flow;
use crate::schedule::Ticks;
use std::collections::VecDeque;

/// The lead of a greedy flow's message number over the next expected one must be less than this.
const MOST_AHEAD: u64 = 65_536;

/// States whether the program has recorded a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Missing,
    /// A line about the message broke a rule.
    Refused,
    Recorded,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Refused => "refused",
            Self::Recorded => "recorded",
        }
    }
}

/// Consecutive messages `from` to `to` inclusive that have no valid record.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingRange {
    pub from: u64,
    pub to: u64,
    pub state: State,
}

impl MissingRange {
    /// Returns the D record of these messages, which were due and have no valid S record.
    pub fn line(&self, flow: u32) -> String {
        let Self { from, to, state } = self;
        format!("D,{flow},{from},{to},{}\n", state.name())
    }
}

struct Slot {
    due_ns: i64,
    state: State,
}

/// A flow that the program sends, with the state of its messages. Times are offsets from t0.
pub struct Sent {
    pub flow: Flow,
    /// Names of the flow's receivers in records.
    pub to: Vec<String>,
    /// The schedule, which yields the due times of messages; None for a greedy flow.
    ticks: Option<Ticks>,
    /// A second copy of the schedule, used to count due messages; it is ahead of `ticks`, since records
    /// are read later.
    counter: Option<Ticks>,
    due: u64,
    settled: u64,
    /// The number of the message in the first slot: the first one without a record, or the one after all
    /// recorded.
    first: u64,
    slots: VecDeque<Slot>,
}

impl Sent {
    pub fn new(flow: Flow, to: Vec<String>) -> Self {
        Self {
            ticks: ticks(&flow),
            counter: ticks(&flow),
            flow,
            to,
            due: 0,
            settled: 0,
            first: 0,
            slots: VecDeque::new(),
        }
    }

    /// Returns when a message is due; None for a greedy flow or a recorded message. An error if the message
    /// is not due at `now_ns`, if the flow has no such message, or if a greedy flow's number leads too far.
    pub fn due_ns(&mut self, seq: u64, now_ns: i64) -> Result<Option<i64>, String> {
        if seq < self.first {
            return Ok(None);
        }
        if self.ticks.is_none() {
            return self.follows(seq);
        }
        self.extend(seq, now_ns);
        match self.slots.get((seq - self.first) as usize) {
            Some(slot) => Ok(Some(slot.due_ns)),
            None if self.ended() => Err(format!(
                "there is no seq {seq}: the flow has {} messages, counted from 0",
                self.first + self.slots.len() as u64
            )),
            None => Err(format!("message {seq} is not due yet, if ever")),
        }
    }

    /// Returns None if a message's number in a greedy flow leads the next expected number by less than
    /// `MOST_AHEAD`, otherwise an error. A lead is allowed because several threads of a program may write
    /// records out of order.
    fn follows(&self, seq: u64) -> Result<Option<i64>, String> {
        let next = self.first + self.slots.len() as u64;
        if seq < next + MOST_AHEAD {
            return Ok(None);
        }
        Err(format!(
            "seq {seq} is more than {MOST_AHEAD} beyond {next}, the next of the flow"
        ))
    }

    /// Marks a message, for which `due_ns` gave no error, as recorded; returns false if it already was.
    pub fn record(&mut self, seq: u64) -> bool {
        if self.state(seq) == State::Recorded {
            return false;
        }
        self.set(seq, State::Recorded);
        while self
            .slots
            .front()
            .is_some_and(|s| s.state == State::Recorded)
        {
            self.slots.pop_front();
            self.first += 1;
        }
        true
    }

    /// Marks a due message as refused if its record broke a rule and it has no valid record, since the
    /// program will not record it again. Does nothing for a greedy flow.
    pub fn refuse(&mut self, seq: u64, now_ns: i64) {
        if matches!(self.due_ns(seq, now_ns), Ok(Some(_))) && self.state(seq) == State::Missing {
            self.set(seq, State::Refused);
        }
    }

    /// Returns the number of due messages about which the program has written no line; 0 for a greedy flow.
    pub fn outstanding(&mut self, now_ns: i64) -> u64 {
        while let Some(counter) = &mut self.counter
            && counter.take_due(now_ns).is_some()
        {
            self.due += 1;
        }
        self.due.saturating_sub(self.settled)
    }

    /// Returns the due messages without a valid record as ranges of the same state, in order; none for a
    /// greedy flow.
    pub fn missing(&mut self, now_ns: i64) -> Vec<MissingRange> {
        if self.ticks.is_none() {
            return Vec::new();
        }
        self.extend(u64::MAX, now_ns);
        let mut ranges: Vec<MissingRange> = Vec::new();
        for (seq, slot) in (self.first..).zip(&self.slots) {
            let (state, open) = (slot.state, slot.state != State::Recorded);
            match ranges.last_mut() {
                Some(last) if open && last.to + 1 == seq && last.state == state => last.to = seq,
                _ if open => ranges.push(MissingRange {
                    from: seq,
                    to: seq,
                    state,
                }),
                _ => {}
            }
        }
        ranges
    }

    fn extend(&mut self, seq: u64, now_ns: i64) {
        while self.first + (self.slots.len() as u64) <= seq
            && let Some(due_ns) = self.ticks.as_mut().and_then(|t| t.take_due(now_ns))
        {
            let state = State::Missing;
            self.slots.push_back(Slot { due_ns, state });
        }
    }

    fn ended(&self) -> bool {
        self.ticks.as_ref().is_none_or(|t| t.peek().is_none())
    }

    fn state(&self, seq: u64) -> State {
        match seq.checked_sub(self.first) {
            None => State::Recorded,
            Some(place) => self
                .slots
                .get(place as usize)
                .map_or(State::Missing, |s| s.state),
        }
    }

    fn set(&mut self, seq: u64, state: State) {
        let place = (seq - self.first) as usize;
        while self.ticks.is_none() && self.slots.len() <= place {
            let state = State::Missing;
            self.slots.push_back(Slot { due_ns: 0, state });
        }
        self.settled += u64::from(self.slots[place].state == State::Missing);
        self.slots[place].state = state;
    }
}

fn ticks(flow: &Flow) -> Option<Ticks> {
    let schedule = flow.schedule.clone()?;
    Some(Ticks::new(schedule, flow.start_ns, flow.stop_ns))
}

/// Returns the offsets from t0 at which a flow's messages are due, as an iterator, since a long flow has
/// millions; empty for a greedy flow.
pub fn due(flow: &Flow) -> impl Iterator<Item = i64> {
    let mut ticks = ticks(flow);
    std::iter::from_fn(move || ticks.as_mut()?.take_due(i64::MAX))
}
