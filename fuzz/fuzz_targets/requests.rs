//! Requests of the lab process.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vnet_agent::fuzzing::requests(data));
