//! moto's server: its packages, in a place of their own, and its process, with stand-ins for some of its actions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use crate::binaries;
use crate::certs::write;
use crate::lock::Lock;
use crate::node::NodeTestbed;
use crate::payload::BOOT_IMAGE;
use crate::ports::allocate;
use crate::process::Launch;
use crate::progress::Progress;
use crate::service::{Service, plain_health_at};
use crate::site::Site;
use crate::work_dir::WorkDir;

/// The packages, with their versions.
const REQUIREMENTS: &str = include_str!("requirements.txt");
/// Runs moto with stand-ins for what it leaves out.
const STAND_INS: &str = include_str!("stand_ins.py");
const PORT: u16 = 5566;

/// Where pods find its API, too. Programs send credentials in plain text to addresses of the link only.
pub(super) const LINK_LOCAL: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(169, 254, 170, 9)), PORT);

/// Where its API is.
pub(super) fn address(testbed: &NodeTestbed) -> SocketAddr {
    (testbed.namespaces().subnets().node(1), PORT).into()
}

/// The same server on loopback, for object stores, tokens and entries of instances: no machine runs in it.
pub(super) async fn on_loopback(
    work_dir: &Arc<WorkDir>,
    progress: &Progress,
) -> Result<(Service, SocketAddr)> {
    let address = SocketAddr::from(([127, 0, 0, 1], allocate()?));
    let launch = launch(work_dir, progress, address).await?;
    let health = plain_health_at(address, "/moto-api/data.json")?;
    Ok((Service::new(launch, work_dir, health), address))
}

/// Its process.
pub(super) async fn service(testbed: &NodeTestbed) -> Result<Service> {
    let address = address(testbed);
    let namespaces = testbed.namespaces();
    let own = format!("{}/32", LINK_LOCAL.ip());
    namespaces.run("ip", ["addr", "replace", &own, "dev", "lo"])?;
    // On both addresses; its network is the testbed's alone.
    let all = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    let launch = launch(testbed.work_dir(), &testbed.progress, all).await?;
    let launch = Site::Namespaces(namespaces).place(launch);
    let health = plain_health_at(address, "/moto-api/data.json")?;
    Ok(Service::new(launch, testbed.work_dir(), health))
}

async fn launch(work_dir: &WorkDir, progress: &Progress, address: SocketAddr) -> Result<Launch> {
    let python = ensure_installed(progress).await?;
    let images = work_dir.join("machine-images.json");
    write(&images, &machine_images().to_string())?;
    let stand_ins = work_dir.join("moto-stand-ins.py");
    write(&stand_ins, STAND_INS)?;
    Ok(Launch::new("moto", &python)
        .environment("MOTO_AMIS_PATH", images.to_string_lossy())
        // Without the modules of the directory, and of the user.
        .arg("-I")
        .arg(stand_ins)
        .arg("-H")
        .arg(address.ip().to_string())
        .arg("-p")
        .arg(address.port().to_string()))
}

/// What machines can boot from: the one image that releases name. The provider reads its root device and its size.
fn machine_images() -> Value {
    json!([{
        "ami_id": BOOT_IMAGE,
        "name": "testbed",
        "description": "machines of a testbed",
        "owner_id": "123456789012",
        "public": true,
        "virtualization_type": "hvm",
        "architecture": "x86_64",
        "state": "available",
        "platform": null,
        "image_type": "machine",
        "hypervisor": "xen",
        "root_device_name": "/dev/xvda",
        "root_device_type": "ebs",
        "sriov": "simple",
    }])
}

/// Finds the interpreter that has the server's packages, or installs them. What is half installed has another name.
async fn ensure_installed(progress: &Progress) -> Result<PathBuf> {
    let cache = binaries::cache()?;
    let digest = format!("{:x}", Sha256::digest(REQUIREMENTS));
    let place = cache.join(format!("moto-{}", &digest[..12]));
    let program = place.join("bin/python3");
    if place.join("complete").is_file() {
        return Ok(program);
    }
    std::fs::create_dir_all(&cache)
        .with_context(|| format!("cannot create {}", cache.display()))?;
    let _lock = Lock::take(&cache.join("moto.lock")).await?;
    if place.join("complete").is_file() {
        return Ok(program);
    }
    let step = progress.step("installing moto, a fake AWS");
    // A killed installation is started again: an environment does not bear to be renamed.
    run(
        "python3",
        &["-m", "venv", "--clear", &place.to_string_lossy()],
    )
    .await?;
    let list = place.join("requirements.txt");
    std::fs::write(&list, REQUIREMENTS)?;
    let pip = place.join("bin/pip");
    let list = list.to_string_lossy();
    run(&pip.to_string_lossy(), &["install", "--quiet", "-r", &list]).await?;
    std::fs::write(place.join("complete"), "")?;
    step.done();
    Ok(program)
}

async fn run(program: &str, args: &[&str]) -> Result<()> {
    let output = Command::new(program)
        .args(args)
        .output()
        .await
        .with_context(|| format!("cannot run {program} (Debian package python3-venv)"))?;
    ensure!(
        output.status.success(),
        "{program} {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
