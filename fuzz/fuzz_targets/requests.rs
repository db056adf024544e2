//! Fuzzes the agent's parsers with requests of the lab process.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vnet_agent::fuzzing::requests(data));
