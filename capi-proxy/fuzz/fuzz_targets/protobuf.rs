//! Protobuf bodies.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| capi_proxy_fuzz::protobuf(data));
