//! Layers as they are, and as an attacker would make them to leave the directory.

use std::fs;

use tempfile::{TempDir, tempdir};

use super::unpack::{Refused, unpack};
use super::*;

const PROGRAM: &str = "usr/bin/render";
const TEMPLATES: &str = "etc/mcc/templates";

/// An entry of a layer.
enum Item<'a> {
    File(&'a str, &'a [u8]),
    Program(&'a str, &'a [u8]),
    Directory(&'a str),
    Symlink(&'a str, &'a str),
    Hardlink(&'a str, &'a str),
    Fifo(&'a str),
}

use Item::{Directory, Fifo, File, Hardlink, Program, Symlink};

/// A layer whose names are written as they are.
fn layer(items: &[Item<'_>]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for item in items {
        let (kind, path, content, link, mode) = match item {
            File(path, content) => (tar::EntryType::Regular, path, *content, "", 0o644),
            Program(path, content) => (tar::EntryType::Regular, path, *content, "", 0o755),
            Directory(path) => (tar::EntryType::Directory, path, &b""[..], "", 0o755),
            Symlink(path, link) => (tar::EntryType::Symlink, path, &b""[..], *link, 0o777),
            Hardlink(path, link) => (tar::EntryType::Link, path, &b""[..], *link, 0o644),
            Fifo(path) => (tar::EntryType::Fifo, path, &b""[..], "", 0o644),
        };
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        // The setters of the library refuse names that lead out.
        let old = header.as_old_mut();
        old.name[..path.len()].copy_from_slice(path.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        archive.append(&header, content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn wanted() -> [Pattern; 2] {
    [Pattern::file(PROGRAM), Pattern::below(TEMPLATES)]
}

fn store(directory: &TempDir) -> Store {
    Store::new(directory.path().join("store"), Caps::default())
}

/// The wanted files of an image with these layers, from the bottom up.
fn image(store: &Store, layers: &[Vec<u8>]) -> Links {
    let mut merge = Merge::default();
    for layer in layers.iter().rev() {
        let staging = store.staging().unwrap();
        let wanted = wanted();
        let found = unpack(layer.as_slice(), &wanted, store.caps(), staging.path()).unwrap();
        let digest = Digest::of(layer);
        store
            .keep(&digest, &wanted, &found, staging.path())
            .unwrap();
        // What was kept is what is read.
        let (found, unknown) = store.found(&digest, &wanted);
        assert!(unknown.is_empty(), "{unknown:?}");
        merge.add(found);
    }
    merge.follow(&wanted())
}

fn extracted(store: &Store, layers: &[Vec<u8>]) -> Extracted {
    match image(store, layers) {
        Links::Followed(files) => Extracted::new(store.clone(), files),
        Links::Open(open) => panic!("open links: {open:?}"),
    }
}

/// The paths and contents of an image.
fn contents(layers: &[Vec<u8>]) -> Vec<(String, String)> {
    let home = tempdir().unwrap();
    let extracted = extracted(&store(&home), layers);
    let text = |path: &str| extracted.text(path).unwrap().unwrap();
    let paths = extracted.paths();
    paths.map(|path| (path.to_owned(), text(path))).collect()
}

fn refusal(layer: &[u8], caps: &Caps) -> Refused {
    let home = tempdir().unwrap();
    unpack(layer, &wanted(), caps, home.path()).unwrap_err()
}

/// A name, a second layer, and the files with their contents after both.
type Row<'a> = (&'a str, Vec<u8>, &'a [(&'a str, &'a str)]);

#[test]
fn upper_layers_replace_and_remove_files_of_lower_ones() {
    let base = || {
        layer(&[
            Directory("usr/bin/"),
            Program("./usr/bin/render", b"old"),
            File("etc/mcc/templates/a", b"a"),
            File("etc/mcc/templates/b/c", b"c"),
            File("etc/passwd", b"unwanted"),
        ])
    };
    let all = [
        ("etc/mcc/templates/a", "a"),
        ("etc/mcc/templates/b/c", "c"),
        (PROGRAM, "old"),
    ];
    let table: [Row<'_>; 12] = [
        ("nothing", layer(&[File("usr/bin/renderer", b"x")]), &all),
        (
            "replaced",
            layer(&[Program(PROGRAM, b"new")]),
            &[all[0], all[1], (PROGRAM, "new")],
        ),
        (
            "whiteout",
            layer(&[File("usr/bin/.wh.render", b"")]),
            &all[..2],
        ),
        (
            "whiteout of a directory",
            layer(&[File("etc/mcc/templates/.wh.b", b"")]),
            &[all[0], all[2]],
        ),
        (
            "whiteout far above",
            layer(&[File("etc/.wh.mcc", b"")]),
            &all[2..],
        ),
        (
            "opaque",
            layer(&[
                File("etc/mcc/templates/.wh..wh..opq", b""),
                File("etc/mcc/templates/d", b"d"),
            ]),
            &[("etc/mcc/templates/d", "d"), all[2]],
        ),
        ("opaque root", layer(&[File(".wh..wh..opq", b"")]), &[]),
        (
            "a directory in place of a file",
            layer(&[Directory("usr/bin/render/")]),
            &all[..2],
        ),
        (
            "a directory with files in place of a file",
            layer(&[File("etc/mcc/templates/a/d", b"d")]),
            &[("etc/mcc/templates/a/d", "d"), all[1], all[2]],
        ),
        (
            "a file in place of a directory",
            layer(&[File("usr/bin", b"")]),
            &all[..2],
        ),
        (
            "a link in place of a directory",
            layer(&[Symlink("usr/bin", "/elsewhere")]),
            &all[..2],
        ),
        ("a device", layer(&[Fifo(PROGRAM)]), &all[..2]),
    ];
    for (name, upper, expected) in table {
        let found = contents(&[base(), upper]);
        let found: Vec<_> = found
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn whiteouts_do_not_remove_files_of_their_own_layer() {
    let upper = layer(&[
        File("usr/bin/.wh.render", b""),
        Program(PROGRAM, b"of this layer"),
    ]);
    assert_eq!(
        contents(&[upper]),
        [(PROGRAM.to_owned(), "of this layer".to_owned())]
    );
}

#[test]
fn links_lead_to_files_of_the_image_only() {
    let home = tempdir().unwrap();
    let open = |link: Item<'_>| image(&store(&home), &[layer(&[link])]);
    for (target, expected) in [
        ("render.rhel9", "usr/bin/render.rhel9"),
        ("/opt/render", "opt/render"),
        // Nothing is above the root of an image.
        ("../../../../etc/shadow", "etc/shadow"),
    ] {
        let links = open(Symlink(PROGRAM, target));
        assert_eq!(
            links,
            Links::Open(vec![Pattern::file(expected)]),
            "{target}"
        );
    }
    let links = open(Hardlink(PROGRAM, "usr/bin/other"));
    assert_eq!(links, Links::Open(vec![Pattern::file("usr/bin/other")]));
    // Below a directory, links to files that are not wanted are left out.
    let found = contents(&[layer(&[
        File("etc/mcc/templates/a", b"a"),
        Symlink("etc/mcc/templates/b", "a"),
        Symlink("etc/mcc/templates/c", "../../../../../etc/shadow"),
        Symlink("etc/mcc/templates/d", "d"),
        Hardlink("usr/bin/render", "etc/mcc/templates/a"),
    ])]);
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        ["etc/mcc/templates/a", "etc/mcc/templates/b", PROGRAM]
    );
    assert!(found.iter().all(|(_, text)| text == "a"), "{found:?}");
}

#[test]
fn no_entry_is_written_outside_of_the_directory() {
    let outside = ["../escaped", "etc/mcc/templates/../../../../escaped"];
    for path in outside {
        let error = refusal(&layer(&[File(path, b"x")]), &Caps::default());
        assert!(matches!(error, Refused::Outside(_)), "{path}: {error}");
    }
    // A link first, and then a file "below" it.
    let home = tempdir().unwrap();
    let target = home.path().join("target");
    fs::create_dir(&target).unwrap();
    let root = layer(&[
        Symlink("etc/mcc/templates/link", target.to_str().unwrap()),
        File("etc/mcc/templates/link/file", b"x"),
    ]);
    let extracted = extracted(&store(&home), &[root]);
    let to = home.path().join("to");
    fs::create_dir(&to).unwrap();
    assert!(
        extracted
            .copy("etc/mcc/templates/link/file", &to.join("file"))
            .unwrap()
    );
    assert_eq!(fs::read_dir(target).unwrap().count(), 0);
    for path in ["../x", "/x", "a//b", "a/./b", "a/..", ""] {
        assert_eq!(below(&to, path), None, "{path}");
    }
    assert_eq!(below(&to, "a/b"), Some(to.join("a/b")));
}

#[test]
fn whatever_is_too_large_is_refused() {
    let caps = Caps {
        file: 100,
        layer: 150,
        entries: 3,
        ..Caps::default()
    };
    let content = [0; 101];
    let at = |name: &str| format!("{TEMPLATES}/{name}");
    let large = layer(&[File(PROGRAM, &content)]);
    assert!(matches!(refusal(&large, &caps), Refused::File { .. }));
    let total = layer(&[
        File(PROGRAM, &content[..80]),
        File(&at("a"), &content[..80]),
    ]);
    assert!(matches!(refusal(&total, &caps), Refused::Total(150)));
    let many: Vec<String> = (0..4).map(|number| at(&number.to_string())).collect();
    let files: Vec<_> = many.iter().map(|path| File(path, b"")).collect();
    assert!(matches!(
        refusal(&layer(&files), &caps),
        Refused::Entries(3)
    ));
    let many: Vec<String> = (0..4).map(|number| at(&format!(".wh.{number}"))).collect();
    let files: Vec<_> = many.iter().map(|path| File(path, b"")).collect();
    assert!(matches!(
        refusal(&layer(&files), &caps),
        Refused::Entries(3)
    ));
    // Files that are not wanted do not count.
    let home = tempdir().unwrap();
    let other = layer(&[File("usr/share/large", &[0; 5000])]);
    assert!(unpack(other.as_slice(), &wanted(), &caps, home.path()).is_ok());
}

#[test]
fn long_names_are_read_in_both_formats() {
    let long = format!("{TEMPLATES}/{}/unit.yaml", "x".repeat(150));
    let mut gnu = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(3);
    header.set_mode(0o644);
    gnu.append_data(&mut header, &long, &b"gnu"[..]).unwrap();
    let mut pax = tar::Builder::new(Vec::new());
    let records = [
        ("path", long.as_bytes()),
        ("SCHILY.xattr.a", &b"with\nbreak"[..]),
    ];
    pax.append_pax_extensions(records).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_size(3);
    header.set_mode(0o644);
    pax.append_data(&mut header, "short", &b"pax"[..]).unwrap();
    for (archive, expected) in [(gnu, "gnu"), (pax, "pax")] {
        let found = contents(&[archive.into_inner().unwrap()]);
        assert_eq!(found, [(long.clone(), expected.to_owned())]);
    }
}

#[test]
fn a_layer_that_is_cut_off_is_refused() {
    let whole = layer(&[File(PROGRAM, &[1; 5000])]);
    let error = refusal(&whole[..2000], &Caps::default());
    assert!(matches!(error, Refused::Archive(_)), "{error}");
}

#[test]
fn copies_have_the_mode_of_the_image_and_are_verified() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempdir().unwrap();
    let store = store(&home);
    let layers = [layer(&[
        Program(PROGRAM, b"program"),
        File("etc/mcc/templates/a", b"a"),
    ])];
    let extracted = extracted(&store, &layers);
    let to = home.path().join("render");
    assert!(extracted.copy(PROGRAM, &to).unwrap());
    assert_eq!(fs::read(&to).unwrap(), b"program");
    assert_eq!(
        fs::metadata(&to).unwrap().permissions().mode() & 0o100,
        0o100
    );
    assert!(
        !extracted
            .copy("usr/bin/other", &home.path().join("other"))
            .unwrap()
    );
    // It never writes through what is there already.
    let again = extracted.copy(PROGRAM, &to).unwrap_err();
    assert!(matches!(again, CopyError::Io { .. }), "{again}");
    let blob = store.blob(Digest::of(b"program").as_str());
    fs::write(&blob, b"PROGRAM").unwrap();
    let changed = home.path().join("changed");
    let error = extracted.copy(PROGRAM, &changed).unwrap_err();
    assert!(matches!(error, CopyError::Damaged { .. }), "{error}");
    assert!(!changed.exists());
    // It is read again.
    let (_, unknown) = store.found(&Digest::of(&layers[0]), &wanted());
    assert_eq!(unknown, [Pattern::file(PROGRAM)]);
}

#[test]
fn the_store_keeps_what_was_used_last() {
    let home = tempdir().unwrap();
    let caps = Caps {
        kept: 250,
        ..Caps::default()
    };
    let store = Store::new(home.path(), caps);
    let layers: Vec<_> = (1..=3_u8)
        .map(|number| layer(&[Program(PROGRAM, &[number; 100])]))
        .collect();
    let is_known = |layer: &[u8]| store.found(&Digest::of(layer), &wanted()).1.is_empty();
    for layer in &layers {
        let _ = image(&store, std::slice::from_ref(layer));
        // Times of files are not finer than this everywhere.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let known: Vec<_> = layers.iter().map(|layer| is_known(layer)).collect();
    assert_eq!(known, [false, true, true]);
}
