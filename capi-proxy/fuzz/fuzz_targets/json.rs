//! The streaming JSON translator, in one piece and in many.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| capi_proxy_fuzz::json(data));
