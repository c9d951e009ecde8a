//! The framing of requests on a connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| capi_proxy_fuzz::gate(data));
