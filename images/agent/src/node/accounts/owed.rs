//! What a program owes of one flow: a record of each message that its schedule has made due.

use crate::proto::Flow;
use crate::schedule::Ticks;
use std::collections::VecDeque;

/// So far a message of a greedy flow may be ahead of the last one known.
const MOST_AHEAD: u64 = 65_536;

/// What has been written down of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Missing,
    /// A line about it broke a rule.
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

/// Messages `from` to `to`, both included, that have no record.
#[derive(Debug, PartialEq, Eq)]
pub struct Debt {
    pub from: u64,
    pub to: u64,
    pub state: State,
}

impl Debt {
    /// D: messages that were due and have no S record that holds.
    pub fn line(&self, flow: u32) -> String {
        let Self { from, to, state } = self;
        format!("D,{flow},{from},{to},{}\n", state.name())
    }
}

struct Slot {
    due_ns: i64,
    state: State,
}

/// A flow that the program sends. Times count from t0.
pub struct Sent {
    pub flow: Flow,
    /// Endpoints of its receivers.
    pub to: Vec<String>,
    /// What is due next; None: a greedy flow, whose messages are due when the program has time for them.
    ticks: Option<Ticks>,
    /// The same once more, for counting: it runs ahead of records, which are read later.
    counter: Option<Ticks>,
    due: u64,
    settled: u64,
    /// Messages from `first` on that were asked for; all before it have their record.
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

    /// When a message is due; None: of a greedy flow, or where it has its record. An error: it is not due yet, or
    /// never will be.
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
                "the flow has {} messages, counted from 0: none has seq {seq}",
                self.first + self.slots.len() as u64
            )),
            None => Err(format!("message {seq} is not due yet, if ever")),
        }
    }

    /// Messages of a greedy flow are numbered as they are sent: of those that several threads send, few are out of order.
    fn follows(&self, seq: u64) -> Result<Option<i64>, String> {
        let next = self.first + self.slots.len() as u64;
        if seq < next + MOST_AHEAD {
            return Ok(None);
        }
        Err(format!(
            "seq {seq} is more than {MOST_AHEAD} beyond {next}, the next of the flow"
        ))
    }

    /// Takes note of a message's record; false if it has one already.
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

    /// Takes note of a line that broke a rule: the program thinks that it has written down this message.
    pub fn refuse(&mut self, seq: u64, now_ns: i64) {
        if matches!(self.due_ns(seq, now_ns), Ok(Some(_))) && self.state(seq) == State::Missing {
            self.set(seq, State::Refused);
        }
    }

    /// How many messages that were due by now no line was written about.
    pub fn owed(&mut self, now_ns: i64) -> u64 {
        while let Some(counter) = &mut self.counter
            && counter.take_due(now_ns).is_some()
        {
            self.due += 1;
        }
        self.due.saturating_sub(self.settled)
    }

    /// The messages due by now that have no record, in order. A greedy flow owes none.
    pub fn debts(&mut self, now_ns: i64) -> Vec<Debt> {
        if self.ticks.is_none() {
            return Vec::new();
        }
        self.extend(u64::MAX, now_ns);
        let mut debts: Vec<Debt> = Vec::new();
        for (seq, slot) in (self.first..).zip(&self.slots) {
            let (state, open) = (slot.state, slot.state != State::Recorded);
            match debts.last_mut() {
                Some(last) if open && last.to + 1 == seq && last.state == state => last.to = seq,
                _ if open => debts.push(Debt {
                    from: seq,
                    to: seq,
                    state,
                }),
                _ => {}
            }
        }
        debts
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

/// Offsets from t0 at which a flow's messages are due: reckoned when they are asked for, since a long flow has millions.
pub fn due(flow: &Flow) -> impl Iterator<Item = i64> {
    let mut ticks = ticks(flow);
    std::iter::from_fn(move || ticks.as_mut()?.take_due(i64::MAX))
}
