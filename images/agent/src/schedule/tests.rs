//! Tests properties of schedules: order, counts, shares of senders, bursts, and independence of the start
//! time.

use super::*;
use crate::proto::Rate;
use proptest::prelude::*;

const MS: i64 = 1_000_000;

fn spec(
    kind: StreamKind,
    arrivals: Arrivals,
    rate: f64,
    seed: u64,
    index: u64,
    count: u64,
) -> Schedule {
    Schedule {
        kind,
        rates: rates(&[(0, rate)]),
        seed,
        index,
        count,
        arrivals,
        burst: 1,
    }
}

/// Returns rates from pieces of (start in milliseconds, ticks per second).
fn rates(pieces: &[(i64, f64)]) -> Vec<Rate> {
    let rate = |(ms, per_s): &(i64, f64)| Rate {
        from_ns: ms * MS,
        per_s: *per_s,
    };
    pieces.iter().map(rate).collect()
}

/// Returns a kind of arrivals by its number: 0 periodic, 1 Poisson, 2 together.
fn arrivals(choice: u8) -> Arrivals {
    [Arrivals::Periodic, Arrivals::Poisson, Arrivals::Together][usize::from(choice)]
}

fn changing() -> impl Strategy<Value = Vec<Rate>> {
    let rate = prop_oneof![Just(0.0), 0.5f64..300.0];
    prop::collection::vec((1i64..1500, rate), 1..5).prop_map(|pieces| {
        let mut at = 0;
        let mut list = Vec::new();
        for (ms, per_s) in pieces {
            list.push((at, per_s));
            at += ms;
        }
        rates(&list)
    })
}

fn all(mut ticks: Ticks) -> Vec<i64> {
    std::iter::from_fn(|| ticks.take_due(i64::MAX)).collect()
}

#[test]
fn periodic_stream_of_one_client_is_evenly_spaced() {
    let s = spec(StreamKind::Shared, Arrivals::Periodic, 100.0, 7, 0, 1);
    let got = all(Ticks::new(s, 0, 50_000_000));
    assert_eq!(got, [0, 10_000_000, 20_000_000, 30_000_000, 40_000_000]);
}

#[test]
fn no_tick_is_consumed_before_it_is_due() {
    let s = spec(StreamKind::Shared, Arrivals::Periodic, 10.0, 7, 0, 1);
    let mut ticks = Ticks::new(s, 50_000_000, i64::MAX);
    assert_eq!(ticks.take_due(99_999_999), None);
    assert_eq!(ticks.take_due(100_000_000), Some(100_000_000));
    assert_eq!(ticks.peek(), Some(200_000_000));
    ticks.stop();
    assert_eq!(ticks.take_due(i64::MAX), None);
}

#[test]
fn owners_are_spread_evenly() {
    let mut hits = [0u32; 10];
    (0..10_000).for_each(|k| hits[owner(42, k, 10) as usize] += 1);
    // Each owner gets 1000 on average, with a standard deviation of 30; the bound is five of these.
    assert!(hits.iter().all(|h| (850..=1150).contains(h)), "{hits:?}");
}

#[test]
fn poisson_has_the_rate_and_the_spread_asked_for() {
    let s = spec(StreamKind::Own, Arrivals::Poisson, 100.0, 3, 5, 1);
    let got = all(Ticks::new(s, 0, 100_000_000_000));
    // 10,000 ticks are expected, with a standard deviation of 100.
    assert!((9_500..=10_500).contains(&got.len()), "{}", got.len());
    let gaps: Vec<f64> = got.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let var = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!(
        (0.9..1.1).contains(&(var.sqrt() / mean)),
        "coefficient of variation {}",
        var.sqrt() / mean
    );
}

proptest! {
    #[test]
    fn shared_parts_are_disjoint_and_complete(
        seed: u64, count in 1u64..20, rates in changing(), kind in 0u8..3, burst in 1u32..4, until_ms in 1i64..3000,
    ) {
        let until = until_ms * MS;
        let part = |index, count| Schedule {
            rates: rates.clone(),
            burst,
            ..spec(StreamKind::Shared, arrivals(kind), 1.0, seed, index, count)
        };
        let whole = all(Ticks::new(part(0, 1), 0, until));
        let mut parts: Vec<i64> = (0..count)
            .flat_map(|i| all(Ticks::new(part(i, count), 0, until)))
            .collect();
        parts.sort_unstable();
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn a_late_client_has_the_ticks_of_an_early_one_from_then_on(
        seed: u64, index in 0u64..5, rates in changing(), from_ms in 0i64..2000, own: bool, which in 0u8..3, burst in 1u32..4,
    ) {
        let kind = if own { StreamKind::Own } else { StreamKind::Shared };
        let s = || Schedule {
            rates: rates.clone(),
            burst,
            ..spec(kind, arrivals(which), 1.0, seed, index, 5)
        };
        let (from, until) = (from_ms * MS, 3000 * MS);
        let late = all(Ticks::new(s(), from, until));
        let early: Vec<i64> = all(Ticks::new(s(), 0, until)).into_iter().filter(|t| *t >= from).collect();
        prop_assert_eq!(late, early);
    }

    #[test]
    fn own_rate_gives_the_expected_count(seed: u64, index: u64, rate in 1.0f64..100.0) {
        let got = all(Ticks::new(spec(StreamKind::Own, Arrivals::Periodic, rate, seed, index % 1000, 1), 0, 10_000_000_000));
        prop_assert!((got.len() as f64 - rate * 10.0).abs() <= 1.0, "{} at {}", got.len(), rate);
    }

    #[test]
    fn one_rate_is_that_of_a_plain_clock_or_process_to_the_nanosecond(
        seed: u64, index in 0u64..1000, rate in 0.5f64..500.0, own: bool,
    ) {
        let kind = if own { StreamKind::Own } else { StreamKind::Shared };
        let s = |arrivals| spec(kind, arrivals, rate, seed, if own { index } else { 0 }, 1);
        let phase = if own { 1.0 - unit(draw(seed, 4, index)) } else { 0.0 };
        let plain = (0u64..).map(|k| (((k as f64 + phase) / rate) * 1e9) as i64);
        let plain: Vec<i64> = plain.take_while(|t| *t < 3000 * MS).collect();
        prop_assert_eq!(all(Ticks::new(s(Arrivals::Periodic), 0, 3000 * MS)), plain);
        let stream = if own { 3 + index } else { 2 };
        let mut at = 0.0;
        let process = (0u64..).map(|k| {
            at -= unit(draw(seed, stream, k)).ln() / rate;
            (at * 1e9) as i64
        });
        let process: Vec<i64> = process.take_while(|t| *t < 3000 * MS).collect();
        prop_assert_eq!(all(Ticks::new(s(Arrivals::Poisson), 0, 3000 * MS)), process);
    }

    #[test]
    fn every_piece_has_the_count_that_its_rate_makes(rates in changing(), seed: u64, index: u64, which in 0u8..3) {
        let until = 6000 * MS;
        let s = Schedule {
            rates: rates.clone(),
            ..spec(StreamKind::Own, arrivals(which), 1.0, seed, index % 1000, 1)
        };
        let got = all(Ticks::new(s, 0, until));
        prop_assert!(got.is_sorted());
        for (i, rate) in rates.iter().enumerate() {
            let to = rates.get(i + 1).map_or(until, |next| next.from_ns);
            // Times are cut to whole nanoseconds, so a tick on a border may fall 1 ns before it.
            let within = |t: &&i64| (rate.from_ns..to).contains(&(**t + 1));
            let count = got.iter().filter(within).count() as f64;
            let expected = rate.per_s * (to - rate.from_ns) as f64 / 1e9;
            let tolerance = match arrivals(which) {
                // The bound is seven standard deviations, plus one tick for rounding at a border.
                Arrivals::Poisson => 7.0 * expected.sqrt() + 1.0,
                _ => 1.000_001,
            };
            prop_assert!(expected > 0.0 || count == 0.0, "{} in a silence", count);
            prop_assert!((count - expected).abs() <= tolerance, "{} of {}", count, expected);
        }
    }
}

#[test]
fn a_tick_on_the_border_belongs_to_the_later_rate() {
    let s = Schedule {
        rates: rates(&[(0, 10.0), (200, 0.0), (300, 20.0)]),
        ..spec(StreamKind::Shared, Arrivals::Periodic, 1.0, 7, 0, 1)
    };
    let got = all(Ticks::new(s, 0, 420 * MS));
    assert_eq!(got, [0, 100 * MS, 300 * MS, 350 * MS, 400 * MS]);
}

#[test]
fn a_rate_of_nothing_for_ever_ends_the_stream() {
    for choice in 0..3 {
        let s = Schedule {
            rates: rates(&[(0, 100.0), (1000, 0.0)]),
            ..spec(StreamKind::Own, arrivals(choice), 1.0, 7, 3, 1)
        };
        let got = all(Ticks::new(s, 0, i64::MAX));
        assert!(
            got.len() > 50 && *got.last().unwrap() < 1000 * MS,
            "{got:?}"
        );
    }
}

#[test]
fn senders_together_have_the_same_ticks_and_a_burst_has_them_several_times() {
    let of = |index| {
        let s = Schedule {
            burst: 2,
            ..spec(StreamKind::Own, Arrivals::Together, 20.0, 7, index, 5)
        };
        all(Ticks::new(s, 0, 100 * MS))
    };
    assert_eq!(of(0), [0, 0, 50 * MS, 50 * MS]);
    assert_eq!(of(4), of(0));
}

#[test]
fn refuses_impossible_schedules() {
    let refused = |pieces: &[(i64, f64)], burst| {
        let s = Schedule {
            rates: rates(pieces),
            burst,
            ..spec(StreamKind::Own, Arrivals::Periodic, 1.0, 7, 0, 1)
        };
        check(&s).unwrap_err()
    };
    assert!(refused(&[], 1).contains("begin at 0"));
    assert!(refused(&[(5, 1.0)], 1).contains("begin at 0"));
    assert!(refused(&[(0, 1.0), (9, 2.0), (3, 1.0)], 1).contains("3000000 ns comes after 9000000"));
    assert!(refused(&[(0, f64::NAN)], 1).contains("out of range"));
    assert!(refused(&[(0, 1.0)], 0).contains("burst"));
}
