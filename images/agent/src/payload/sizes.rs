//! Draws the lengths of a flow's payloads from a distribution; a length is a function of seed and message number.

use super::Payload;
use crate::os::Res;
use crate::proto;
use crate::schedule::uniform;

const STREAM: u64 = 7; // stream of the seed's random numbers; the lives of connections have 6

/// Returns an error if the lengths are out of order, if the scale is not positive, or if the kind of payload
/// lacks a length from `least` on.
pub fn check(payload: &proto::Payload, kind: &dyn Payload) -> Res<()> {
    let Some(sizes) = &payload.sizes else {
        return Ok(());
    };
    let (least, most) = (sizes.least, sizes.most);
    if least > most {
        return Err(format!(
            "payload.sizes: {least} to {most} bytes are out of order"
        ));
    }
    if sizes
        .scale
        .is_some_and(|scale| scale.is_nan() || scale <= 0.0)
    {
        return Err("payload.sizes.scale: is not above zero; write the bytes of a mean".to_owned());
    }
    if least < kind.smallest() || most > kind.largest() || kind.step() != 1 {
        let name = &payload.kind;
        return Err(format!(
            "payload.sizes: {name} does not have all lengths of {least} to {most} bytes"
        ));
    }
    Ok(())
}

/// Returns the length in bytes of the payload of message `seq`.
pub fn bytes(payload: &proto::Payload, seq: u64) -> usize {
    let Some(sizes) = &payload.sizes else {
        return payload.bytes;
    };
    let (least, most) = (sizes.least, sizes.most);
    let share = uniform(sizes.seed, STREAM, seq);
    let room = (most - least) as f64;
    let more = match sizes.scale {
        None => (share * (room + 1.0)).floor(),
        // This inverts the distribution function of an exponential distribution that is cut at `room`.
        Some(scale) => (-scale * (share * (-room / scale).exp_m1()).ln_1p()).round(),
    };
    least + (more as usize).min(most - least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::bytes::Bytes;
    use serde_json::json;

    fn payload(least: usize, most: usize, scale: Option<f64>) -> proto::Payload {
        let sizes = json!({"least": least, "most": most, "scale": scale, "seed": 3});
        serde_json::from_value(json!({"kind": "bytes", "bytes": 300, "sizes": sizes})).unwrap()
    }

    fn mean(of: &proto::Payload) -> f64 {
        (0..20_000).map(|seq| bytes(of, seq) as f64).sum::<f64>() / 2e4
    }

    #[test]
    fn lengths_are_the_seeds_within_their_bounds_and_have_their_mean() {
        let even = payload(100, 500, None);
        let all: Vec<usize> = (0..20_000).map(|seq| bytes(&even, seq)).collect();
        assert_eq!(
            (all.iter().min(), all.iter().max()),
            (Some(&100), Some(&500))
        );
        assert!((mean(&even) - 300.0).abs() < 4.0, "{}", mean(&even));
        assert_eq!(bytes(&even, 7), all[7]);
        // The distribution is cut at three scales, so its mean is 100 + 200 * (1 - 3 / (e^3 - 1)) = 268.6.
        let long = payload(100, 700, Some(200.0));
        assert!((mean(&long) - 268.6).abs() < 4.0, "{}", mean(&long));
        let shorter = (0..20_000).filter(|seq| bytes(&long, *seq) < 300).count();
        assert!((0.64..0.69).contains(&(shorter as f64 / 2e4)), "{shorter}");
        let same = payload(100, 100, Some(1e-9));
        assert!((0..100).all(|seq| bytes(&same, seq) == 100));
    }

    #[test]
    fn bad_distributions_are_refused() {
        assert!(check(&payload(28, 500, None), &Bytes).is_ok());
        for (bad, word) in [
            (payload(500, 100, None), "out of order"),
            (payload(20, 100, None), "does not have all lengths"),
            (payload(100, 200, Some(0.0)), "above zero"),
        ] {
            let refused = check(&bad, &Bytes).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
    }
}
