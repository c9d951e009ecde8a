//! Stand-ins for clouds, as far as one machine needs them: one for each side, since machines of both have the same names.

mod azure;
mod gcp;
mod ibm;
mod openstack;
pub(crate) mod server;

use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::certs::write;
use testbed::cloud::FakeInstances;
use testbed::payload::{BOOT_IMAGE, REGION};
use testbed::testbed::Testbed;
use testbed::tls_proxy::TlsProxy;

use crate::providers::cloud::azure::Azure;
use crate::providers::cloud::gcp::Gcp;
use crate::providers::cloud::ibm::Ibm;
use crate::providers::cloud::openstack::Openstack;
use crate::providers::cloud::server::{Api, Server};

/// Where IBM's services are.
const IBM_REGION: &str = "us-south";

/// A cloud that is to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// EC2, by moto.
    Aws,
    /// Azure Resource Manager and the identity service, behind a forward proxy.
    Azure,
    /// Google's compute API and token exchange.
    Gcp,
    /// Virtual servers in a VPC and Power Virtual Server, with IBM's identities.
    Ibm,
    /// Keystone, Nova and Neutron.
    Openstack,
}

/// How a provider and its objects find their cloud.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// For the provider.
    pub(crate) flags: Vec<String>,
    /// For the provider.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// For placeholders in fixtures.
    pub(crate) values: Vec<(&'static str, String)>,
}

/// A stand-in that runs.
#[derive(Debug)]
pub(crate) struct FakeCloud {
    pub(crate) connection: Connection,
    _program: Program,
}

#[derive(Debug)]
enum Program {
    Moto { _instances: Box<FakeInstances> },
    Own { _server: Server },
    Proxied { _proxy: TlsProxy },
    Both { _server: Server, _proxy: TlsProxy },
}

// === impl FakeCloud ===

impl FakeCloud {
    /// Starts it for the side with this namespace.
    pub(crate) async fn start(kind: Kind, testbed: &Testbed, namespace: &str) -> Result<Self> {
        match kind {
            Kind::Aws => aws(testbed).await,
            Kind::Azure => azure(testbed, namespace).await,
            Kind::Gcp => gcp(testbed, namespace).await,
            Kind::Ibm => ibm(testbed, namespace).await,
            Kind::Openstack => openstack().await,
        }
    }
}

async fn aws(testbed: &Testbed) -> Result<FakeCloud> {
    let instances = FakeInstances::start(testbed.work_dir(), &testbed.progress).await?;
    let network = &instances.network;
    let connection = Connection {
        flags: Vec::new(),
        environment: vec![
            ("AWS_ENDPOINT_URL", instances.client.url()),
            ("AWS_REGION", REGION.to_owned()),
            ("AWS_ACCESS_KEY_ID", "testbed".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "testbed".to_owned()),
        ],
        values: vec![
            ("VPC", network.vpc.clone()),
            ("SUBNET", network.subnet.clone()),
            ("SECURITY_GROUP", network.security_group.clone()),
            ("AMI", BOOT_IMAGE.to_owned()),
        ],
    };
    Ok(FakeCloud {
        connection,
        _program: Program::Moto {
            _instances: Box::new(instances),
        },
    })
}

/// With a workload identity: a token from a file, which is exchanged. The provider knows the public hosts only.
async fn azure(testbed: &Testbed, namespace: &str) -> Result<FakeCloud> {
    let name = format!("{namespace}-azure");
    let (proxy, mut environment) =
        in_place_of(&azure::HOSTS, Azure::default(), testbed, &name).await?;
    let token = testbed.work_dir().join(format!("{namespace}-azure.token"));
    write(&token, "testbed")?;
    environment.push(("AZURE_FEDERATED_TOKEN_FILE", text(&token)?));
    let connection = Connection {
        environment,
        ..Connection::default()
    };
    Ok(FakeCloud {
        connection,
        _program: Program::Proxied { _proxy: proxy },
    })
}

/// An API in place of public hosts, and the environment in which a provider finds it.
async fn in_place_of(
    hosts: &[&str],
    api: impl Api,
    testbed: &Testbed,
    name: &str,
) -> Result<(TlsProxy, Vec<(&'static str, String)>)> {
    let authority = &testbed.control_plane.authority;
    let api = Arc::new(Mutex::new(api));
    let serve = move |_, stream| server::serve(stream, Arc::clone(&api));
    let proxy = TlsProxy::start(authority, name, hosts, serve).await?;
    let environment = vec![
        // Go's clients connect to loopback directly, which is where the API server is.
        ("HTTPS_PROXY", proxy.url()),
        // No other exceptions, whatever the environment of the tests has.
        ("NO_PROXY", "localhost".to_owned()),
        ("SSL_CERT_FILE", text(&authority.certificate())?),
    ];
    Ok((proxy, environment))
}

/// With credentials of workload identity: a token from a file, which is exchanged.
async fn gcp(testbed: &Testbed, namespace: &str) -> Result<FakeCloud> {
    let server = Server::start(Gcp::default()).await?;
    let token = testbed.work_dir().join(format!("{namespace}-gcp.token"));
    write(&token, "testbed")?;
    let credentials = json!({
        "type": "external_account",
        "audience": "testbed",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("{}/token", server.url()),
        "credential_source": { "file": token, "format": { "type": "text" } },
    });
    let file = testbed.work_dir().join(format!("{namespace}-gcp.json"));
    write(&file, &credentials.to_string())?;
    let connection = Connection {
        flags: Vec::new(),
        environment: vec![("GOOGLE_APPLICATION_CREDENTIALS", text(&file)?)],
        values: vec![("CLOUD", server.url().to_owned())],
    };
    Ok(own(connection, server))
}

/// With a flag for another resource controller, the provider panics at machines of Power Virtual Server: so this one is replaced
/// at its public host.
async fn ibm(testbed: &Testbed, namespace: &str) -> Result<FakeCloud> {
    let name = format!("{namespace}-ibm");
    let (proxy, mut environment) = in_place_of(&ibm::HOSTS, Ibm::default(), testbed, &name).await?;
    let server = Server::start(Ibm::default()).await?;
    let url = server.url();
    let services = format!("vpc={url}/vpc/v1,powervs={url},globaltagging={url}/tagging");
    environment.extend([
        ("IBMCLOUD_AUTH_TYPE", "iam".to_owned()),
        ("IBMCLOUD_APIKEY", "testbed".to_owned()),
        ("IBMCLOUD_AUTH_URL", url.to_owned()),
    ]);
    let connection = Connection {
        flags: vec![format!("--service-endpoint={IBM_REGION}:{services}")],
        environment,
        values: Vec::new(),
    };
    Ok(FakeCloud {
        connection,
        _program: Program::Both {
            _server: server,
            _proxy: proxy,
        },
    })
}

async fn openstack() -> Result<FakeCloud> {
    let server = Server::start_with(Openstack::new).await?;
    let connection = Connection {
        values: vec![("CLOUD", server.url().to_owned())],
        ..Connection::default()
    };
    Ok(own(connection, server))
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().context("the path is not UTF-8")?;
    Ok(text.to_owned())
}

fn own(connection: Connection, server: Server) -> FakeCloud {
    FakeCloud {
        connection,
        _program: Program::Own { _server: server },
    }
}

/// Lets objects name endpoints without TLS: the kind of Google's clusters requires `https`.
pub(crate) fn accept_plain_http(crds: &mut [Value]) {
    const ENDPOINTS: &str =
        "/schema/openAPIV3Schema/properties/spec/properties/serviceEndpoints/properties";
    for crd in crds {
        let versions = crd["spec"]["versions"].as_array_mut();
        for version in versions.into_iter().flatten() {
            let endpoints = version.pointer_mut(ENDPOINTS);
            let endpoints = endpoints.and_then(Value::as_object_mut);
            for endpoint in endpoints.into_iter().flat_map(|it| it.values_mut()) {
                if let Some(schema) = endpoint.as_object_mut() {
                    schema.remove("pattern");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_form_of_endpoints_is_free() {
        let schema = |endpoint: Value| {
            json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": { "properties": {
                "spec": { "properties": {
                    "project": { "type": "string", "pattern": "a" },
                    "serviceEndpoints": { "properties": { "compute": endpoint } },
                } },
            } } } }] } })
        };
        let mut crds = [schema(json!({ "type": "string", "pattern": "^https://" }))];
        accept_plain_http(&mut crds);
        assert_eq!(crds[0], schema(json!({ "type": "string" })));
    }
}
