//! Checks the times in a program's records: they lie in the program's life, are in order, and are present
//! exactly as the outcome requires.

pub const OUTCOMES: [&str; 5] = ["settled", "sent", "unsettled", "unsent", "dropped"];
/// The longest time by which a timer may wake a program too early. Such a program records the due time as the
/// time of sending, so that time may lie in the future by this much.
pub const EARLY_NS: i64 = 100_000;

/// The result of a check; the error names the broken rule.
pub type Fault = Result<(), String>;

/// The times between which recorded events must lie.
pub struct Window {
    /// The time at which the program started; an event before this time is invalid.
    pub began_ns: i64,
    /// The time at which the present line was read; an event after this time is invalid.
    pub now_ns: i64,
    pub t0_ns: Option<i64>,
}

impl Window {
    /// Parses a time in Unix nanoseconds, and checks that it lies between t0 and `EARLY_NS` after now. The
    /// check also rejects times in seconds or milliseconds. An error before t0 is known.
    pub fn time(&self, name: &str, text: &str) -> Result<i64, String> {
        let at = whole(name, text)?;
        match self.t0_ns {
            Some(t0_ns) if at >= t0_ns => self.past(name, at, EARLY_NS),
            Some(t0_ns) => Err(format!(
                "{name} is before t0_ns, {t0_ns}; write Unix nanoseconds of the lab's clock"
            )),
            None => Err(format!(
                "{name} is before the scenario's start; wait until the file has t0_ns"
            )),
        }
    }

    pub fn time_or_never(&self, name: &str, text: &str) -> Result<i64, String> {
        match whole(name, text)? {
            0 => Ok(0),
            _ => self.time(name, text),
        }
    }

    /// Returns `at`, or an error if it lies more than `early_ns` in the future.
    fn past(&self, name: &str, at: i64, early_ns: i64) -> Result<i64, String> {
        if at - early_ns <= self.now_ns {
            return Ok(at);
        }
        Err(format!(
            "{name} is after now, {}; write what has happened, by the lab's clock",
            self.now_ns
        ))
    }

    /// Checks that a time lies between the program's start, which may precede t0, and now, with a
    /// tolerance of `early_ns` at both ends.
    pub fn life(&self, name: &str, at: i64, early_ns: i64) -> Fault {
        if at.saturating_add(early_ns) < self.began_ns {
            return Err(format!(
                "{name} is before the program was started, {}; write Unix nanoseconds of the lab's clock",
                self.began_ns
            ));
        }
        self.past(name, at, early_ns).map(drop)
    }
}

/// The times of an S record in Unix nanoseconds; 0 means never.
pub struct Times {
    pub scheduled: i64,
    pub sent: i64,
    pub settled: i64,
}

impl Times {
    pub fn in_order(&self) -> Fault {
        if self.sent != 0 && self.sent < self.scheduled {
            return Err("sent_ns is earlier than scheduled_ns".to_owned());
        }
        if self.settled != 0 && self.settled < self.sent.max(self.scheduled) {
            return Err("settled_ns is earlier than what comes before it".to_owned());
        }
        Ok(())
    }

    /// Checks that the times that the outcome requires are present, and no others.
    pub fn agree_with(&self, outcome: &str) -> Fault {
        let (left, settled) = match outcome {
            "settled" => (true, true),
            "sent" | "unsettled" => (true, false),
            "unsent" | "dropped" => (false, false),
            _ => return Err(format!("outcome is not one of {}", OUTCOMES.join(", "))),
        };
        for (name, at, wanted) in [
            ("sent_ns", self.sent, left),
            ("settled_ns", self.settled, settled),
        ] {
            match (at, wanted) {
                (0, true) => return Err(format!("is {outcome} and has no {name}")),
                (1.., false) => return Err(format!("is {outcome} and has a {name}; write 0")),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Parses a whole number of digits only, at most `i64::MAX`; `name` is the field's name in the error.
pub fn whole(name: &str, text: &str) -> Result<i64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let value = digits.then(|| text.parse().ok()).flatten();
    value.ok_or_else(|| format!("{name} is not a whole number from 0"))
}
