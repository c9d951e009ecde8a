//! YAML bodies.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| capi_proxy_fuzz::yaml(data));
