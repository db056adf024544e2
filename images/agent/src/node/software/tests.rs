//! Tests starts, readiness commands and restarts with real programs.

use super::*;

fn supervised(argv: &[&str], ready: Value) -> Supervised {
    let spec = json!({"argv": argv, "restart": "always", "ready": ready});
    let spec = serde_json::from_value(spec).unwrap();
    Supervised::start("s", spec, "/tmp", None, json!(1)).unwrap()
}

fn later(this: &Supervised) -> i64 {
    this.restart_at.expect("a restart is planned")
}

#[test]
fn a_readiness_command_counts_only_for_the_start_that_it_was_made_for() {
    let ready = json!({"command": ["sleep", "60"], "deadline_ns": 60_000_000_000i64});
    let mut this = supervised(&["sleep", "60"], ready);
    this.on_time(clock::mono_ns(), &[]);
    let (first, probe) = (this.pid, this.probe_pid.expect("it runs"));
    this.start_id = None;
    child::signal_group(first, libc::SIGKILL);
    assert!(this.on_exit(first, 137));
    assert_eq!(this.probe_pid, None);
    this.on_time(later(&this), &[]);
    assert!(!this.on_exit(probe, 0));
    assert!(!this.probe_passed, "of the first start");
    this.on_time(clock::mono_ns(), &[]);
    assert!(this.probe_pid.is_some_and(|pid| pid != probe));
    this.end_probe();
    child::signal_group(this.pid, libc::SIGKILL);
}

#[test]
fn a_program_that_cannot_be_started_again_is_tried_again() {
    let mut this = supervised(&["true"], json!({}));
    this.start_id = None;
    assert!(this.on_exit(this.pid, 0));
    this.spec.argv = vec!["/nowhere".to_owned()];
    for restarts in 1..3 {
        this.on_time(later(&this), &[]);
        assert_eq!(this.restarts, restarts);
        assert!(this.goes_on());
    }
    this.spec.argv = vec!["true".to_owned()];
    this.on_time(later(&this), &[]);
    assert!(this.alive());
}
