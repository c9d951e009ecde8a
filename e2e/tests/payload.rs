//! Releases read from a widely used registry: over plain HTTP, and with TLS, an authority of its own and users.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use api::hypershift::v1beta1::node_pool::Arch;
use futures::future::join_all;
use payload::{Mirrors, Options, PullSecret, Reason, Release, Releases};
use serde_json::{Value, json};
use testbed::binaries::{Binaries, Binary};
use testbed::certs::Authority;
use testbed::images::{Archive, Contents, File};
use testbed::process::Launch;
use testbed::progress::Progress;
use testbed::registry::{self, Registry};
use testbed::service::{Service, secure_health};
use testbed::site::Site;
use testbed::work_dir::WorkDir;

const USER: &str = "someone";
const PASSWORD: &str = "open-sesame";
/// The user with the bcrypt hash of the password: `perl -e 'print crypt("open-sesame", "\$2b\$05\$abcdefghijklmnopqrstuu")'`.
const HTPASSWD: &str = "someone:$2b$05$abcdefghijklmnopqrstuutXu9KzOt.1yBoZUeFWoT/914/JfszCO\n";

/// Two registries with the same images.
struct Fixture {
    open: Registry,
    guarded: Service,
    guarded_at: SocketAddr,
    authority: Authority,
    /// References by digest, at the name that all testbeds' registries have.
    release: String,
    plain_image: String,
}

#[tokio::test]
async fn a_release_is_read_from_a_real_registry() -> Result<()> {
    let mut fixture = Fixture::start().await?;
    let plain = fixture.over_plain_http().await?;
    ensure!(plain.version.to_string() == "4.22.1", "{}", plain.version);
    let boot_images = plain.boot_images.as_ref().context("no boot images")?;
    ensure!(boot_images.ami(Arch::Amd64, "us-east-1") == Some("ami-1"));

    let guarded = fixture.as_known_user().await?;
    ensure!(guarded.components == plain.components && guarded.digest == plain.digest);
    fixture.strangers_are_refused().await?;
    fixture.other_images_are_no_releases().await?;
    fixture.guarded.stop().await?;
    fixture.open.service.stop().await
}

/// What the testbed upgrades with: two releases in the form of OpenShift's, without a common image.
#[tokio::test]
async fn releases_of_the_testbed_differ_in_every_image() -> Result<()> {
    let progress = Progress::detect();
    let binaries = Binaries::ensure(&[Binary::Registry], &progress).await?;
    let work_dir = Arc::new(WorkDir::open("payload-releases")?);
    let mut registry = Registry::new(binaries.path(Binary::Registry)?, Site::Loopback, &work_dir)?;
    registry.service.start().await?;
    let payload = testbed::payload::Payload::build(&progress).await?;
    let pushed = payload.push(&registry).await?;
    let host = registry.address().to_string();
    let releases = Releases::new(Options {
        plain_http: [host.clone()].into(),
        mirrors: Mirrors::new([(registry::NAME.to_owned(), vec![host])]),
        ..Options::default()
    })?;
    let anonymous = PullSecret::anonymous();
    let mut read = Vec::new();
    for version in ["4.21.9", "4.22.0", "4.22.1"] {
        let release = pushed.release(&registry, version).await?;
        let release = releases.get(&release.image, &anonymous).await?;
        ensure!(
            release.version.to_string() == version,
            "{}",
            release.version
        );
        read.push(release);
    }
    for pair in read.windows(2) {
        for (tag, image) in &pair[0].components {
            let other = pair[1].components.get(tag);
            let other = other.with_context(|| format!("{tag} is in one of them only"))?;
            ensure!(image != other, "{tag} is {image} in both");
        }
    }
    registry.service.stop().await
}

// === impl Fixture ===

impl Fixture {
    async fn start() -> Result<Self> {
        let binaries = Binaries::ensure(&[Binary::Registry], &Progress::detect()).await?;
        let program = binaries.path(Binary::Registry)?;
        let work_dir = Arc::new(WorkDir::open("payload")?);
        let mut open = Registry::new(program, Site::Loopback, &work_dir)?;
        open.service.start().await?;
        let release = open.push("ocp/release", &archive(manifests())?).await?;
        let other = vec![File::text("/usr/share/something", "else")];
        let plain_image = open.push("ocp/other", &archive(other)?).await?;

        let authority = Authority::create(&work_dir.join("authority"))?;
        let guarded_at = (Ipv4Addr::LOCALHOST, testbed::ports::allocate()?).into();
        let mut guarded = guarded(program, guarded_at, &authority, &work_dir)?;
        guarded.start().await?;
        Ok(Self {
            open,
            guarded,
            guarded_at,
            authority,
            release,
            plain_image,
        })
    }

    /// Through a mirror, because the name in the reference is known to nodes only; by many at once.
    async fn over_plain_http(&self) -> Result<Arc<Release>> {
        let host = self.open.address().to_string();
        let releases = Releases::new(Options {
            plain_http: [host.clone()].into(),
            mirrors: Mirrors::new([(registry::NAME.to_owned(), vec![host.clone()])]),
            ..Options::default()
        })?;
        let anonymous = PullSecret::anonymous();
        let all = join_all((0..20).map(|_| releases.get(&self.release, &anonymous))).await;
        let read: Vec<Arc<Release>> = all.into_iter().collect::<Result<_, _>>()?;
        let first = read.first().context("nothing was read")?;
        ensure!(read.iter().all(|one| Arc::ptr_eq(one, first)), "read twice");
        let mirror = first.mirror.as_deref().unwrap_or_default();
        ensure!(mirror.starts_with(&host), "read from {mirror:?}");
        Ok(first.clone())
    }

    async fn as_known_user(&self) -> Result<Arc<Release>> {
        let (image, secret) = (self.guarded(&self.release), self.secret(PASSWORD)?);
        Ok(self.trusting()?.get(&image, &secret).await?)
    }

    async fn strangers_are_refused(&self) -> Result<()> {
        let image = self.guarded(&self.release);
        let absent = format!("{}/ocp/release:absent", self.guarded_at);
        let unknown_authority = Releases::new(Options::default())?;
        let trusting = self.trusting()?;
        for (releases, image, secret, expected) in [
            (
                &trusting,
                &image,
                PullSecret::anonymous(),
                Reason::PullSecretMissing,
            ),
            (
                &trusting,
                &image,
                self.secret("wrong")?,
                Reason::Unauthorized,
            ),
            (&trusting, &absent, self.secret(PASSWORD)?, Reason::NotFound),
            (
                &unknown_authority,
                &image,
                self.secret(PASSWORD)?,
                Reason::Unreachable,
            ),
        ] {
            let error = releases.get(image, &secret).await.err();
            let error = error.with_context(|| format!("read, and not {expected:?}"))?;
            let text = format!("{error} {error:?}");
            ensure!(error.kind() == expected, "not {expected:?}: {text}");
            ensure!(
                text.contains(image.as_str()),
                "it does not name the image: {text}"
            );
            ensure!(!text.contains(PASSWORD), "it shows the password: {text}");
        }
        Ok(())
    }

    async fn other_images_are_no_releases(&self) -> Result<()> {
        let (image, secret) = (self.guarded(&self.plain_image), self.secret(PASSWORD)?);
        let releases = self.trusting()?;
        let error = releases.get(&image, &secret).await.err().context("read")?;
        ensure!(error.kind() == Reason::NotAPayload, "{error:?}");
        releases.labels(&image, &secret).await?;
        Ok(())
    }

    fn trusting(&self) -> Result<Releases> {
        let bundle = std::fs::read(self.authority.certificate())?;
        Ok(Releases::new(Options {
            ca_bundle: Some(bundle),
            ..Options::default()
        })?)
    }

    fn secret(&self, password: &str) -> Result<PullSecret> {
        let entry = json!({ "username": USER, "password": password });
        let json = json!({ "auths": { self.guarded_at.to_string(): entry } });
        Ok(PullSecret::parse(json.to_string().as_bytes())?)
    }

    /// The same image at the registry that knows its users.
    fn guarded(&self, image: &str) -> String {
        image.replacen(registry::NAME, &self.guarded_at.to_string(), 1)
    }
}

/// A registry with the images of the open one, that requires authentication.
fn guarded(
    program: &std::path::Path,
    address: SocketAddr,
    authority: &Authority,
    work_dir: &Arc<WorkDir>,
) -> Result<Service> {
    let users = work_dir.join("htpasswd");
    std::fs::write(&users, HTPASSWD)?;
    let certificate = authority.server("guarded")?;
    let settings = json!({
        "version": "0.1",
        "log": { "level": "warn", "accesslog": { "disabled": true } },
        "storage": {
            "filesystem": { "rootdirectory": work_dir.join("registry") },
            "maintenance": { "readonly": { "enabled": true } },
        },
        "http": {
            "addr": address.to_string(),
            "tls": { "certificate": certificate.certificate, "key": certificate.key },
        },
        "auth": { "htpasswd": { "realm": "releases", "path": users } },
    });
    let config = work_dir.join("guarded.json");
    std::fs::write(&config, settings.to_string())?;
    let launch = Launch::new("guarded-registry", program)
        .arg("serve")
        .arg(config)
        .environment("OTEL_TRACES_EXPORTER", "none");
    // The root path is public, and has no content.
    let health = secure_health(address, &authority.certificate(), "/")?;
    Ok(Service::new(launch, work_dir, health))
}

fn archive(files: Vec<File>) -> Result<Archive> {
    Archive::of(&Contents {
        entrypoint: "/nothing".to_owned(),
        command: &[],
        files,
    })
}

/// What a release image has.
fn manifests() -> Vec<File> {
    let file = |name: &str, text: String| File::text(format!("/release-manifests/{name}"), text);
    let etcd = format!("registry.example.com/etcd@sha256:{}", "1".repeat(64));
    let references: Value = json!({
        "kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
        "metadata": { "name": "4.22.1" },
        "spec": { "tags": [{ "name": "etcd", "from": { "kind": "DockerImage", "name": etcd } }] },
    });
    let stream = json!({ "stream": "rhcos", "architectures": { "x86_64": { "images": {
        "aws": { "regions": { "us-east-1": { "release": "1", "image": "ami-1" } } } } } } });
    let boot_images = format!("kind: ConfigMap\ndata:\n  stream: |\n    {stream}\n");
    vec![
        file("image-references", references.to_string()),
        file("0000_50_installer_coreos-bootimages.yaml", boot_images),
    ]
}
