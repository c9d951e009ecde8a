//! `ignite FILE UNITS`: does to a machine of the testbed what Ignition does to one of a cloud, at its first boot.
//!
//! It reads the machine's user data, fetches what that refers to until it can be had, writes files, directories, links and
//! units to their own places, and writes a script for each enabled unit into the directory UNITS: the machine has no
//! systemd, and its first process runs those. What a MachineConfig sets beside Ignition is applied as well, which on a real
//! node is the first work of its daemon.

mod data_url;
mod document;
mod fetch;
mod machine_config;
mod unit;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use document::{Document, Unit};
use tokio::time::sleep;

/// Between two attempts, as Ignition does at its most patient.
const RETRY: Duration = Duration::from_secs(1);
/// Where units and their drop-ins lie.
const SYSTEMD: &str = "/etc/systemd/system";

type Result<T> = std::result::Result<T, String>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    pod_tools::tls::install_provider();
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(units)) = (args.next(), args.next()) else {
        eprintln!("usage: ignite FILE UNITS");
        return ExitCode::from(64);
    };
    match run(Path::new(&file), Path::new(&units)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: ignite: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(file: &Path, units: &Path) -> Result<()> {
    let user_data = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let document = merged(Document::parse(&user_data)?).await?;
    for directory in &document.storage.directories {
        create_directory(&directory.path)?;
    }
    for file in &document.storage.files {
        let bytes = data_url::decode(file.contents.source.as_deref().unwrap_or("data:,"))?;
        let mode = u32::try_from(file.mode.unwrap_or(0o644)).unwrap_or(0o644);
        write(&file.path, &bytes, mode)?;
    }
    for link in &document.storage.links {
        create_parent(&link.path)?;
        drop(fs::remove_file(&link.path));
        symlink(&link.target, &link.path).map_err(|error| format!("{}: {error}", link.path))?;
    }
    machine_config::apply(Path::new("/"))?;
    write_units(&document.systemd.units)?;
    scripts(&document.systemd.units, units)
}

/// A document with everything that it references. A referencing document is merged last, and so takes precedence.
async fn merged(document: Document) -> Result<Document> {
    let mut whole = Document::default();
    for reference in &document.ignition.config.merge {
        let authorities = document.authorities()?;
        println!("ignite: fetching {}", reference.source);
        let bytes = loop {
            match fetch::get(reference, &authorities).await {
                Ok(bytes) => break bytes,
                Err(error) => {
                    println!("ignite: {error}; trying again");
                    sleep(RETRY).await;
                }
            }
        };
        println!("ignite: got {} bytes", bytes.len());
        let inner = Document::parse(&bytes)?;
        if !inner.ignition.config.merge.is_empty() {
            return Err(format!("{} refers to others itself", reference.source));
        }
        whole.add(inner);
    }
    whole.add(document);
    Ok(whole)
}

fn write_units(units: &[Unit]) -> Result<()> {
    for unit in units {
        if let Some(contents) = &unit.contents {
            write(
                &format!("{SYSTEMD}/{}", unit.name),
                contents.as_bytes(),
                0o644,
            )?;
        }
        for part in &unit.dropins {
            let path = format!("{SYSTEMD}/{}.d/{}", unit.name, part.name);
            let contents = part.contents.as_deref().unwrap_or_default();
            write(&path, contents.as_bytes(), 0o644)?;
        }
    }
    Ok(())
}

/// A script for each enabled unit that starts something, in order: those that end before those that stay.
fn scripts(units: &[Unit], directory: &Path) -> Result<()> {
    let mut texts = BTreeMap::new();
    for (number, unit) in units.iter().enumerate() {
        if unit.enabled != Some(true) || !unit.name.ends_with(".service") {
            continue;
        }
        let text = whole_unit(&unit.name)?;
        let service = unit::Service::parse(&text);
        let rank = if service.ends() { 1 } else { 2 };
        texts.insert((rank, number), (unit.name.clone(), service));
    }
    for ((rank, number), (name, service)) in texts {
        let path = directory.join(format!("{rank}-{number:03}-{name}"));
        println!("ignite: {name} is enabled");
        write(
            &path.to_string_lossy(),
            service.script(&name).as_bytes(),
            0o755,
        )?;
    }
    Ok(())
}

/// A unit's file with its drop-ins.
fn whole_unit(name: &str) -> Result<String> {
    let path = format!("{SYSTEMD}/{name}");
    let mut text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let parts = fs::read_dir(format!("{path}.d"))
        .into_iter()
        .flatten()
        .flatten();
    let mut parts: Vec<_> = parts.map(|part| part.path()).collect();
    parts.sort();
    for part in parts {
        let more =
            fs::read_to_string(&part).map_err(|error| format!("{}: {error}", part.display()))?;
        text.push('\n');
        text.push_str(&more);
    }
    Ok(text)
}

fn write(path: &str, bytes: &[u8], mode: u32) -> Result<()> {
    create_parent(path)?;
    fs::write(path, bytes).map_err(|error| format!("{path}: {error}"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| format!("{path}: {error}"))
}

fn create_parent(path: &str) -> Result<()> {
    Path::new(path)
        .parent()
        .map_or(Ok(()), |parent| create_directory(&parent.to_string_lossy()))
}

fn create_directory(path: &str) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| format!("{path}: {error}"))
}
