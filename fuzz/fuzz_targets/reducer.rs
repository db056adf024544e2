//! Fuzzes the reducer with capture files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vnet_reduce::fuzz(data));
