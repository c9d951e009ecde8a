//! One image at one registry, read with the credentials of one user.
//!
//! A session does not share tokens: those of one user are never used for another.

mod blob;
mod challenge;
mod http;
mod manifest;
mod realm;

use std::collections::BTreeMap;
use std::time::Duration;

use ::http::uri::Scheme;
use ::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;
use api::hypershift::v1beta1::node_pool::Arch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use form_urlencoded::Serializer;
use hyper::body::Incoming;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex, mpsc};

use crate::error::{Error, Reason};
use crate::layers::{self, Found, Unreadable};
use crate::limits::Broken;
use crate::pull_secret::{Credential, PullSecret};
use crate::reference::{Digest, Reference};
use challenge::Challenge;
use http::{ChannelReader, Failed, Pace, Reply};
use manifest::{Descriptor, ImageConfig, Manifest};

pub(crate) use blob::Layer;
pub(crate) use http::Http;
pub use http::InvalidAuthorities;
pub(crate) use manifest::ImageManifest;

/// The largest manifest: the limit of registries.
const LARGEST_MANIFEST: usize = 4 << 20;
/// The largest configuration of an image.
const LARGEST_CONFIG: usize = 8 << 20;
/// The largest response with a token.
const LARGEST_TOKEN: usize = 1 << 20;
/// The largest layer, as it is downloaded.
const LARGEST_LAYER: u64 = 4 << 30;
/// The most layers of an image.
const MOST_LAYERS: usize = 128;
/// The pauses between attempts after transient failures.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];
/// Chunks of a layer that were downloaded and not scanned yet.
const AHEAD: usize = 8;

/// An image at a registry, for one user.
pub(crate) struct Session<'a> {
    http: &'a Http,
    image: Reference,
    credential: Option<Credential>,
    /// Other hosts for which the pull secret has the same credentials.
    consented: Vec<String>,
    authorization: Mutex<Option<HeaderValue>>,
}

/// What an image says about itself.
#[derive(Debug)]
pub(crate) struct Image {
    /// The architectures it is for; nothing if it is for none that is known.
    pub(crate) architectures: Option<PayloadArch>,
    /// Its labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// What it is made of.
    pub(crate) manifest: ImageManifest,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

// === impl Session ===

impl<'a> Session<'a> {
    /// No request is sent yet.
    pub(crate) fn new(http: &'a Http, image: Reference, pull_secret: &PullSecret) -> Self {
        let credential = pull_secret.credential(&image).cloned();
        Self {
            http,
            image,
            consented: pull_secret.hosts_of(credential.as_ref()),
            credential,
            authorization: Mutex::new(None),
        }
    }

    /// The digest of the image. It also shows that these credentials may read it.
    pub(crate) async fn digest(&self) -> Result<Digest, Error> {
        let (digest, _) = self.manifest(self.image.identifier()).await?;
        Ok(digest)
    }

    /// The image's metadata; of a list, that of the image for this architecture.
    pub(crate) async fn image(&self, arch: Arch) -> Result<Image, Error> {
        let (_, manifest) = self.manifest(self.image.identifier()).await?;
        let (manifest, listed) = match manifest {
            Manifest::Image(manifest) => (manifest, None),
            Manifest::List { manifests } => (
                self.listed(&manifests, arch).await?,
                manifest::architectures(&manifests),
            ),
        };
        let config = self.config(&manifest.config).await?;
        Ok(Image {
            architectures: listed.or(config.architectures()),
            labels: config.labels(),
            manifest,
        })
    }

    /// Looks for files in an image's layers, from the top down, and reads no layer more than it has to.
    pub(crate) async fn files(
        &self,
        manifest: &ImageManifest,
        desired: &[&'static str],
    ) -> Result<BTreeMap<&'static str, Vec<u8>>, Error> {
        if manifest.layers.len() > MOST_LAYERS {
            return Err(self.error(Reason::TooLarge, "it has more than 128 layers"));
        }
        let mut desired = desired.to_vec();
        let mut files = BTreeMap::new();
        for layer in manifest.layers.iter().rev() {
            if desired.is_empty() {
                break;
            }
            let found = self.with_retries(|| self.scan(layer, &desired)).await?;
            desired.retain(|name| !found.files.contains_key(name) && !found.gone.contains(name));
            files.extend(found.files);
        }
        Ok(files)
    }

    /// The image of one architecture in a list.
    async fn listed(
        &self,
        manifests: &[manifest::Listed],
        arch: Arch,
    ) -> Result<ImageManifest, Error> {
        let chosen = manifest::choose(manifests, arch)
            .ok_or_else(|| self.error(Reason::NotFound, "it is for no known architecture"))?;
        match self.manifest(chosen.digest.as_str()).await?.1 {
            Manifest::Image(manifest) => Ok(manifest),
            Manifest::List { .. } => Err(self.error(Reason::Corrupt, "it is a list of lists")),
        }
    }

    async fn manifest(&self, identifier: &str) -> Result<(Digest, Manifest), Error> {
        let path = format!("manifests/{identifier}");
        let bytes = self
            .with_retries(|| self.document(&path, LARGEST_MANIFEST))
            .await?;
        let digest = Digest::of(&bytes);
        if identifier.starts_with("sha256:") && identifier != digest.as_str() {
            return Err(self.digest_mismatch(identifier));
        }
        let manifest = serde_json::from_slice(&bytes).map_err(|error| {
            let detail = "what the registry sends is not the manifest of an image";
            self.error(Reason::Corrupt, detail).caused_by(error)
        })?;
        Ok((digest, manifest))
    }

    async fn config(&self, config: &Descriptor) -> Result<ImageConfig, Error> {
        let path = format!("blobs/{}", config.digest);
        let bytes = self
            .with_retries(|| self.document(&path, LARGEST_CONFIG))
            .await?;
        if Digest::of(&bytes) != config.digest {
            return Err(self.digest_mismatch(config.digest.as_str()));
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            let detail = "its configuration cannot be read";
            self.error(Reason::Corrupt, detail).caused_by(error)
        })
    }

    async fn document(&self, path: &str, limit: usize) -> Result<Bytes, Error> {
        let body = self.get(path).await?.into_body();
        let document = self.http.document(body, limit).await;
        document.map_err(|error| self.failed(error))
    }

    /// Downloads a layer and scans it at the same time. It is downloaded completely, to verify its digest.
    async fn scan(&self, layer: &Descriptor, desired: &[&'static str]) -> Result<Found, Error> {
        if layer.size > LARGEST_LAYER {
            return Err(self.error(Reason::TooLarge, "it has a layer of more than 4 GiB"));
        }
        let _turn = self.http.layers.acquire().await;
        let body = self.get(&format!("blobs/{}", layer.digest)).await?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let desired = desired.to_vec();
        let scan = tokio::task::spawn_blocking(move || {
            layers::scan(ChannelReader::new(receiver), &desired)
        });
        self.download(body.into_body(), layer, sender).await?;
        let scanned = scan.await.map_err(|error| {
            let detail = "scanning a layer was interrupted";
            self.error(Reason::Unreachable, detail).caused_by(error)
        })?;
        scanned.map_err(|error| self.unreadable(error))
    }

    async fn download(
        &self,
        mut body: Incoming,
        layer: &Descriptor,
        sender: mpsc::Sender<Bytes>,
    ) -> Result<(), Error> {
        let (mut hash, mut size) = (Sha256::new(), 0_u64);
        let mut pace = Pace::new(&self.http.limits);
        while let Some(chunk) = pace.chunk(&mut body).await.map_err(|e| self.failed(e))? {
            hash.update(&chunk);
            size += chunk.len() as u64;
            if size > layer.size {
                break;
            }
            // The scan may have ended already.
            let _ = sender.send(chunk).await;
        }
        if size != layer.size || Digest::from_hash(hash.finalize()) != layer.digest {
            return Err(self.digest_mismatch(layer.digest.as_str()));
        }
        Ok(())
    }

    /// Retries transient failures. A registry that is too slow is not retried: it had its time.
    async fn with_retries<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        for pause in PAUSES {
            match attempt().await {
                Err(error) if error.kind() == Reason::Unreachable => {
                    tokio::time::sleep(pause).await
                }
                done => return done,
            }
        }
        attempt().await
    }

    /// Sends a GET request, and authenticates if the registry requests it.
    async fn get(&self, path: &str) -> Result<Response<Incoming>, Error> {
        let known = self.authorization.lock().await.clone();
        let reply = self.request(path, known.as_ref()).await?;
        let is_challenge = reply.response.status() == StatusCode::UNAUTHORIZED && known.is_none();
        // Another host, to which the registry redirected, must not choose where credentials go.
        if !is_challenge || reply.is_foreign {
            return self.checked(reply.response);
        }
        let shown = self.authenticate(reply.response.headers()).await?;
        self.authorization.lock().await.clone_from(&shown);
        let reply = self.request(path, shown.as_ref()).await?;
        self.checked(reply.response)
    }

    async fn request(
        &self,
        path: &str,
        authorization: Option<&HeaderValue>,
    ) -> Result<Reply, Error> {
        let uri = Uri::builder()
            .scheme(self.http.scheme(self.image.host()))
            .authority(self.image.host())
            .path_and_query(format!("/v2/{}/{path}", self.image.path()))
            .build()
            .map_err(|error| {
                let detail = "its URL is invalid";
                self.error(Reason::InvalidReference, detail)
                    .caused_by(error)
            })?;
        let accepted = HeaderValue::from_static(manifest::ACCEPTED);
        let mut headers = HeaderMap::from_iter([(header::ACCEPT, accepted)]);
        headers.extend(authorization.map(|value| (header::AUTHORIZATION, value.clone())));
        let response = self.http.get(uri, headers).await;
        response.map_err(|error| self.failed(error))
    }

    fn checked(&self, response: Response<Incoming>) -> Result<Response<Incoming>, Error> {
        let (host, status) = (self.image.host(), response.status());
        match status.as_u16() {
            200 => Ok(response),
            401 | 403 => Err(self.refused()),
            404 => Err(self.error(
                Reason::NotFound,
                format!("registry {host} has no such image"),
            )),
            408 | 429 | 500.. => {
                let detail = format!("registry {host} is temporarily unavailable ({status})");
                Err(self.error(Reason::Unreachable, detail))
            }
            _ => {
                let detail = format!("unexpected response of registry {host} ({status})");
                Err(self.error(Reason::NotFound, detail))
            }
        }
    }

    /// The credentials in the form that the registry's challenge requests.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Error> {
        let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let texts = challenges.filter_map(|value| value.to_str().ok());
        let known: Vec<_> = texts.filter_map(Challenge::parse).collect();
        let bearer = known.iter().find(|one| **one != Challenge::Basic);
        match bearer.or(known.first()) {
            Some(Challenge::Bearer { realm, service }) => {
                let token = self.token(realm, service.as_deref()).await?;
                Ok(Some(
                    sensitive(&format!("Bearer {token}")).ok_or_else(|| self.refused())?,
                ))
            }
            Some(Challenge::Basic) if self.credential.is_some() => Ok(self.basic()),
            Some(Challenge::Basic) | None => Err(self.refused()),
        }
    }

    fn basic(&self) -> Option<HeaderValue> {
        let credential = self.credential.as_ref()?;
        if credential.username.is_empty() {
            return None;
        }
        let pair = format!("{}:{}", credential.username, credential.password);
        sensitive(&format!("Basic {}", STANDARD.encode(pair)))
    }

    async fn token(&self, realm: &str, service: Option<&str>) -> Result<String, Error> {
        let (uri, query) = self.realm(realm, service)?;
        let response = self.ask_for_token(&uri, query).await?;
        let response = match response.status().as_u16() {
            400..=404 => return Err(self.refused()),
            _ => self.checked(response)?,
        };
        let body = self
            .http
            .document(response.into_body(), LARGEST_TOKEN)
            .await;
        let body = body.map_err(|error| self.failed(error))?;
        let token: Option<Token> = serde_json::from_slice(&body).ok();
        let token = token.and_then(|token| token.token.or(token.access_token));
        token.ok_or_else(|| self.refused())
    }

    /// With a refresh token if there is one, else with user name and password, else anonymously.
    async fn ask_for_token(&self, uri: &Uri, query: String) -> Result<Response<Incoming>, Error> {
        let credential = self.credential.as_ref();
        let refresh = credential.and_then(|it| it.identity_token.as_ref());
        let response = if let Some(refresh) = refresh {
            let form = refresh_form(query, refresh);
            self.http.post_form(uri, form).await
        } else {
            let uri = with_query(uri, &query).ok_or_else(|| self.invalid_realm())?;
            let basic = self.basic().map(|value| (header::AUTHORIZATION, value));
            let reply = self.http.get(uri, HeaderMap::from_iter(basic)).await;
            reply.map(|reply| reply.response)
        };
        response.map_err(|error| self.failed(error))
    }

    /// The token service and the query for it, if credentials may be sent there.
    fn realm(&self, realm: &str, service: Option<&str>) -> Result<(Uri, String), Error> {
        let uri: Uri = realm.parse().map_err(|_| self.invalid_realm())?;
        let plain = self.http.scheme(self.image.host()) == Scheme::HTTP;
        let safe = uri.scheme() == Some(&Scheme::HTTPS) || plain;
        let host = uri.host().filter(|_| safe);
        let host = host.ok_or_else(|| self.invalid_realm())?;
        if self.credential.is_some() && !self.is_token_service(host) {
            return Err(self.foreign_realm(host));
        }
        let mut query = Serializer::new(String::new());
        if let Some(service) = service {
            query.append_pair("service", service);
        }
        query.append_pair("scope", &format!("repository:{}:pull", self.image.path()));
        Ok((uri, query.finish()))
    }

    /// Whether the owner of the credentials, or the registry's name, vouches for the token service.
    fn is_token_service(&self, host: &str) -> bool {
        realm::belongs(self.image.host(), host) || self.is_consented(host)
    }

    /// Whether the pull secret has the same credentials for the token service.
    fn is_consented(&self, host: &str) -> bool {
        self.consented.iter().any(|consented| consented == host)
    }

    // Errors; all name the image.

    fn error(&self, reason: Reason, detail: impl Into<String>) -> Error {
        Error::new(self.image.to_string(), reason, detail)
    }

    fn failed(&self, failed: Failed) -> Error {
        let host = self.image.host();
        match failed {
            Failed::TooLarge(_) => {
                let detail = format!("registry {host} sent a document that is too large");
                self.error(Reason::TooLarge, detail).caused_by(failed)
            }
            Failed::Redirect => {
                let detail = format!("registry {host} sent an invalid redirect");
                self.error(Reason::NotFound, detail).caused_by(failed)
            }
            Failed::Connection(_) => {
                let detail = format!("failed to connect to registry {host}");
                self.error(Reason::Unreachable, detail).caused_by(failed)
            }
            Failed::Slow(broken) => self.error(Reason::TooSlow, slow(host, &broken)),
        }
    }

    fn refused(&self) -> Error {
        let host = self.image.host();
        match self.credential {
            Some(_) => self.error(
                Reason::Unauthorized,
                format!("registry {host} rejected the credentials: correct the entry for {host} in the pull secret"),
            ),
            None => self.error(
                Reason::PullSecretMissing,
                format!("registry {host} requires authentication: add an entry for {host} to the pull secret"),
            ),
        }
    }

    fn invalid_realm(&self) -> Error {
        let detail = format!(
            "registry {} names a token service that cannot be trusted with credentials: it is not an https URL",
            self.image.host()
        );
        self.error(Reason::Unauthorized, detail)
    }

    fn foreign_realm(&self, realm: &str) -> Error {
        let host = self.image.host();
        let detail = format!(
            "registry {host} names the token service {realm}, which does not belong to it: if {realm} is the right \
             one, add an entry for {realm} with the same credentials to the pull secret"
        );
        self.error(Reason::Unauthorized, detail)
    }

    fn digest_mismatch(&self, digest: &str) -> Error {
        let detail = format!(
            "what registry {} sent does not match {digest}",
            self.image.host()
        );
        self.error(Reason::Corrupt, detail)
    }

    fn unreadable(&self, error: Unreadable) -> Error {
        let reason = match &error {
            Unreadable::Archive(_) => Reason::Corrupt,
            Unreadable::Layer | Unreadable::File(_) => Reason::TooLarge,
        };
        self.error(reason, error.to_string()).caused_by(error)
    }
}

/// A limit that a registry broke, and the way out.
pub(crate) fn slow(host: &str, broken: &Broken) -> String {
    format!(
        "registry {host} {broken} (limit {}): use a faster registry or a mirror in spec.imageContentSources, or raise \
         the limit of the operator",
        broken.flag()
    )
}

fn refresh_form(query: String, token: &str) -> String {
    let mut form = Serializer::new(query);
    form.append_pair("grant_type", "refresh_token");
    form.append_pair("client_id", "hypershift");
    form.append_pair("refresh_token", token);
    form.finish()
}

fn with_query(uri: &Uri, query: &str) -> Option<Uri> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = format!("{path}{separator}{query}").parse().ok();
    Uri::from_parts(parts).ok()
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
