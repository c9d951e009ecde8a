//! Layers as tools write them, and as they should not be.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

const A: &str = "release-manifests/a";
const B: &str = "release-manifests/b";

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// Several frames, and one that is to be skipped between them.
fn zstd_in_pieces(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    for piece in bytes.chunks(700) {
        packed.extend(zstd(piece));
        packed.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    }
    packed
}

#[test]
fn files_are_found_however_a_layer_is_packed() {
    let filling = vec![7; 100_000];
    let long = "x".repeat(150);
    let tar = archive(&[
        ("usr/bin/filling", &filling),
        (&long, b"long name"),
        ("release-manifests/a", b"first"),
        ("release-manifests/ab", b"other"),
        ("release-manifests/b", b"second"),
    ]);
    let packed: [(&str, Vec<u8>); 4] = [
        ("plain", tar.clone()),
        ("gzip", gzip(&tar)),
        ("zstd", zstd(&tar)),
        ("zstd in frames", zstd_in_pieces(&tar)),
    ];
    for (name, layer) in packed {
        let found = scan(layer.as_slice(), &[A, B]).unwrap();
        assert_eq!(found.files[A], b"first", "{name}");
        assert_eq!(found.files[B], b"second", "{name}");
    }
}

#[test]
fn whiteouts_delete_files_of_layers_below() {
    for (entry, expected) in [
        ("release-manifests/.wh.a", vec![A]),
        ("release-manifests/.wh..wh..opq", vec![A, B]),
        (".wh.release-manifests", vec![A, B]),
        (".wh..wh..opq", vec![A, B]),
        ("elsewhere/.wh.a", vec![]),
        ("release-manifests/.wh.ab", vec![]),
        (".wh.release", vec![]),
    ] {
        let found = scan(archive(&[(entry, b"")]).as_slice(), &[A, B]).unwrap();
        assert_eq!(found.gone, expected, "{entry}");
    }
}

#[test]
fn replaced_files_are_not_deleted() {
    let layer = archive(&[
        ("release-manifests/.wh..wh..opq", b""),
        ("release-manifests/a", b"1"),
    ]);
    let found = scan(layer.as_slice(), &[A, B]).unwrap();
    assert_eq!((found.files.len(), found.gone), (1, vec![B]));
}

#[test]
fn scanning_stops_when_all_files_are_found() {
    let mut layer = archive(&[("release-manifests/a", b"1"), ("after", b"2")]);
    // Behind the file and its padding there is nothing that makes sense.
    layer.truncate(1024);
    layer.extend([0xff; 4096]);
    let found = scan(layer.as_slice(), &[A]).unwrap();
    assert_eq!(found.files[A], b"1");
}

#[test]
fn malformed_layers_are_rejected() {
    let tar = archive(&[("usr/x", &[1; 5000]), ("release-manifests/a", &[2; 5000])]);
    let packed = gzip(&tar);
    for (name, layer) in [
        (
            "no archive",
            b"<html>certainly not a layer</html>".repeat(40),
        ),
        ("cut off", tar[..tar.len() - 4096].to_vec()),
        ("cut off when packed", packed[..packed.len() / 2].to_vec()),
    ] {
        assert!(scan(layer.as_slice(), &[A]).is_err(), "{name}");
    }
}

#[test]
fn huge_files_and_layers_are_rejected_before_they_are_in_memory() {
    let mut header = tar::Header::new_gnu();
    header.set_path(A).unwrap();
    header.set_size(LARGEST_FILE + 1);
    header.set_cksum();
    let error = scan(header.as_bytes().as_slice(), &[A]).unwrap_err();
    assert!(matches!(error, Unreadable::File(A)), "{error}");

    let mut limited = Limited {
        source: io::repeat(0),
        left: 1 << 20,
    };
    let error = io::copy(&mut limited, &mut io::sink()).unwrap_err();
    assert!(matches!(unreadable(error), Unreadable::Layer));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), kind in 0..4_usize) {
        let magic: [&[u8]; 4] = [b"", &[0x1f, 0x8b, 8, 0], &[0x28, 0xb5, 0x2f, 0xfd], &[0x50, 0x2a, 0x4d, 0x18]];
        let layer = [magic[kind], &bytes].concat();
        let _ = scan(layer.as_slice(), &[A, B]);
    }

    #[test]
    fn a_malformed_layer_never_yields_a_partial_file(at in 0_usize..2000, with in any::<u8>()) {
        let mut layer = gzip(&archive(&[(A, &[9; 3000])]));
        let at = at % layer.len();
        layer[at] = with;
        if let Ok(found) = scan(layer.as_slice(), &[A])
            && let Some(content) = found.files.get(A)
        {
            prop_assert!(content.len() == 3000);
        }
    }
}
