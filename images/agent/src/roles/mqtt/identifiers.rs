//! Checks the subscription identifiers of received messages (MQTT 5, 3.3.4): a message carries those of
//! subscriptions that match its topic.

use super::spec::Subscribe;

const SHARED: &str = "$share/";

/// Returns the fault in the identifiers of a message; None if there is none. A fault is an identifier that no
/// subscription to the topic has. It is also a fault if the message has no identifier although all
/// subscriptions to the topic have one.
pub fn fault(subscriptions: &[Subscribe], topic: &str, found: &[u32]) -> Option<String> {
    if subscriptions.iter().all(|one| one.identifier.is_none()) && found.is_empty() {
        return None;
    }
    let matching = || {
        subscriptions
            .iter()
            .filter(|one| matches(inner(&one.topic), topic))
    };
    let strange = found
        .iter()
        .find(|number| matching().all(|one| one.identifier != Some(**number)));
    if let Some(number) = strange {
        return Some(format!(
            "{topic}: identifier {number} of another subscription"
        ));
    }
    let missing = found.is_empty() && matching().all(|one| one.identifier.is_some());
    (missing && matching().next().is_some()).then(|| format!("{topic}: no identifier"))
}

/// Returns the topic filter of a subscription; for $share/GROUP/FILTER, it is FILTER.
fn inner(topic: &str) -> &str {
    match topic.strip_prefix(SHARED) {
        Some(rest) => rest.split_once('/').map_or(rest, |(_, filter)| filter),
        None => topic,
    }
}

/// Returns whether a topic filter matches a topic (MQTT 5, 4.7).
fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['#', '+']) {
        return false;
    }
    let mut given = topic.split('/');
    for level in filter.split('/') {
        if level == "#" {
            return true;
        }
        match given.next() {
            Some(name) if level == "+" || level == name => {}
            _ => return false,
        }
    }
    given.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_the_standard_says() {
        for (filter, topic, expected) in [
            ("a/#", "a", true),
            ("a/#", "a/b/c", true),
            ("a/+", "a/b", true),
            ("a/+", "a", false),
            ("a/+", "a/b/c", false),
            ("+/b", "a/b", true),
            ("#", "$SYS/x", false),
            ("+/x", "$SYS/x", false),
            ("$SYS/#", "$SYS/x", true),
            ("a", "a/b", false),
            ("/+", "/b", true),
        ] {
            assert_eq!(matches(filter, topic), expected, "{filter} {topic}");
        }
        assert_eq!(inner("$share/g/a/#"), "a/#");
    }

    #[test]
    fn a_message_has_the_identifiers_of_its_subscriptions() {
        let given = [
            ("a/#", Some(1)),
            ("a/b", Some(2)),
            ("c", None),
            ("$share/g/d", Some(3)),
        ];
        let all: Vec<Subscribe> = given
            .into_iter()
            .map(|(topic, identifier)| {
                serde_json::from_value(
                    serde_json::json!({"topic": topic, "qos": 0, "identifier": identifier}),
                )
                .unwrap()
            })
            .collect();
        for (topic, found, wrong) in [
            ("a/b", &[1, 2][..], None),
            ("a/b", &[2], None),
            ("a/c", &[1], None),
            ("c", &[], None),
            ("d", &[3], None),
            ("e", &[], None),
            ("a/c", &[2], Some("identifier 2")),
            ("c", &[1], Some("identifier 1")),
            ("a/b", &[], Some("no identifier")),
        ] {
            let fault = fault(&all, topic, found);
            assert_eq!(
                fault.is_some(),
                wrong.is_some(),
                "{topic} {found:?}: {fault:?}"
            );
            assert!(fault.unwrap_or_default().contains(wrong.unwrap_or("")));
        }
        assert_eq!(fault(&all[2..3], "c", &[]), None);
        assert!(fault(&all[2..3], "c", &[1]).is_some());
    }
}
