//! Fuzzes the agent's parsers with bytes that peers and programs send to a node.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vnet_agent::fuzzing::bytes_of_others(data));
