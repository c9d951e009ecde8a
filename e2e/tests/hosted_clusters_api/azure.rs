//! Clusters on Azure, with workload identities and with managed ones: what the operator makes for Cluster API, field by field,
//! and that nothing is left of it.
//!
//! Its provider does not run: what it would report is not waited for.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource};
use testbed::operator::SOON;
use testbed::{crds, wait};

use crate::hosted_clusters_api::cluster::{Cluster, DEPLOYMENTS, NODE_POOLS, ROLES, SECRETS};
use crate::hosted_clusters_api::control_plane;
use crate::hosted_clusters_api::expect::{fields, is_true, made, named};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};
use crate::hosted_clusters_api::other_platforms::{CLUSTERS, destroyed};

/// The variable of the operators with the identity that reads certificates from key vaults.
pub(crate) const KEY_VAULT_CLIENT: (&str, &str) = (
    "ARO_HCP_KEY_VAULT_USER_CLIENT_ID",
    "00000000-0000-0000-0000-0000000000ff",
);
const INFRASTRUCTURE: &str = "infrastructure.cluster.hypershift.openshift.io/v1beta1";
const AZURE_CLUSTERS: Resource<'_> = Resource::new(INFRASTRUCTURE, "azureclusters");
const IDENTITIES: Resource<'_> = Resource::new(INFRASTRUCTURE, "azureclusteridentities");
const TEMPLATES: Resource<'_> = Resource::new(INFRASTRUCTURE, "azuremachinetemplates");
const DEPLOYED_MACHINES: Resource<'_> = Resource::new(
    "cluster.hypershift.openshift.io/v1beta2",
    "machinedeployments",
);
const CLASSES: Resource<'_> =
    Resource::new("secrets-store.csi.x-k8s.io/v1", "secretproviderclasses");
/// Where the resources of the network are.
const NETWORK: &str = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/network/providers/Microsoft.Network";
const SUBSCRIPTION: &str = "11111111-2222-3333-4444-555555555555";
const TENANT: &str = "66666666-7777-8888-9999-000000000000";
/// The container of the proxy for Cluster API.
const PROXY: &str = "kube-apiserver-proxy";
const TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";

/// A cluster on Azure.
struct Azure {
    cluster: Cluster,
    is_managed: bool,
}

/// One cluster of each kind, from its creation to its end.
pub(crate) async fn lives(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let class = crds::of_any_object(
        "secrets-store.csi.x-k8s.io",
        "v1",
        "SecretProviderClass",
        "secretproviderclasses",
        "Namespaced",
    );
    crds::install(admin, &[class]).await?;
    for azure in [
        Azure {
            cluster: Cluster::private("azure"),
            is_managed: false,
        },
        Azure {
            cluster: Cluster::private("aro"),
            is_managed: true,
        },
    ] {
        let lived = azure.lives(admin, fixture).await;
        lived.context(azure.cluster.name)?;
    }
    Ok(())
}

// === impl Azure ===

impl Azure {
    async fn lives(&self, admin: &ApiClient, fixture: &Fixture) -> Result<()> {
        self.create(admin, &fixture.release).await?;
        control_plane::comes_up(admin, self.cluster.name).await?;
        self.cluster_is_made(admin).await.context("the cluster")?;
        self.credentials_are_made(admin)
            .await
            .context("credentials")?;
        self.provider_is_made(admin).await.context("the provider")?;
        self.machines_are_made(admin).await.context("machines")?;
        destroyed(admin, self.cluster.name).await
    }

    async fn create(&self, admin: &ApiClient, release: &str) -> Result<()> {
        let (platform, machines) = (self.platform(), self.machines());
        let objects = self.cluster.desired_on(release, &platform, &machines)?;
        admin.apply(&objects).await
    }

    fn platform(&self) -> Value {
        let authentication = if self.is_managed {
            let identity =
                |name: &str| json!({ "credentialsSecretName": name, "objectEncoding": "utf-8" });
            json!({
                "azureAuthenticationConfigType": "ManagedIdentities",
                "managedIdentities": {
                    "controlPlane": {
                        "managedIdentitiesKeyVault": { "name": "vault", "tenantID": TENANT },
                        "cloudProvider": identity("cloud-provider"),
                        "nodePoolManagement": identity("node-pool"),
                        "controlPlaneOperator": identity("operator"),
                        "imageRegistry": identity("image-registry"),
                        "ingress": identity("ingress"),
                        "network": identity("network"),
                        "disk": identity("disk"),
                        "file": identity("file"),
                    },
                    "dataPlane": {
                        "imageRegistryMSIClientID": client(1),
                        "diskMSIClientID": client(2),
                        "fileMSIClientID": client(3),
                    },
                },
            })
        } else {
            let identity = |number: u8| json!({ "clientID": client(number) });
            json!({
                "azureAuthenticationConfigType": "WorkloadIdentities",
                "workloadIdentities": {
                    "cloudProvider": identity(1),
                    "nodePoolManagement": identity(2),
                    "imageRegistry": identity(3),
                    "ingress": identity(4),
                    "network": identity(5),
                    "disk": identity(6),
                    "file": identity(7),
                },
            })
        };
        json!({ "type": "Azure", "azure": {
            "location": "eastus",
            "resourceGroup": "machines",
            "vnetID": format!("{NETWORK}/virtualNetworks/vnet"),
            "subnetID": format!("{NETWORK}/virtualNetworks/vnet/subnets/nodes"),
            "securityGroupID": format!("{NETWORK}/networkSecurityGroups/nsg"),
            "subscriptionID": SUBSCRIPTION,
            "tenantID": TENANT,
            "azureAuthenticationConfig": authentication,
        } })
    }

    fn machines(&self) -> Value {
        let image = if self.is_managed {
            json!({ "type": "AzureMarketplace", "azureMarketplace": {
                "publisher": "azureopenshift", "offer": "aro4", "sku": "420-v2", "version": "420.0.1",
            } })
        } else {
            json!({ "type": "ImageID", "imageID": "/images/1" })
        };
        json!({ "type": "Azure", "azure": {
            "vmSize": "Standard_D4s_v5",
            "subnetID": format!("{NETWORK}/virtualNetworks/vnet/subnets/nodes"),
            "availabilityZone": "2",
            "image": image,
            "osDisk": { "sizeGiB": 120, "persistence": "Ephemeral", "diskStorageAccountType": "StandardSSD_LRS" },
            "diagnostics": { "storageAccountType": "Managed" },
        } })
    }

    async fn cluster_is_made(&self, admin: &ApiClient) -> Result<()> {
        let (namespace, infra) = (self.cluster.namespace(), self.cluster.infra());
        let expected = json!({
            "location": "eastus",
            "resourceGroup": "machines",
            "subscriptionID": SUBSCRIPTION,
            "identityRef": { "name": self.cluster.name, "namespace": namespace },
            "networkSpec": {
                "vnet": {
                    "id": format!("{NETWORK}/virtualNetworks/vnet"), "name": "vnet", "resourceGroup": "network",
                },
                "nodeOutboundLB": { "name": infra, "backendPool": { "name": infra } },
            },
            "controlPlaneEndpoint": { "host": "api.example.com", "port": 6443 },
        });
        let path = AZURE_CLUSTERS.named(&namespace, self.cluster.name);
        let found = made(admin, &path, &expected).await?;
        let managed_by = &found["metadata"]["annotations"]["cluster.x-k8s.io/managed-by"];
        ensure!(managed_by == "external", "{}", found["metadata"]);
        wait::until("the AzureCluster to be ready", SOON, async || {
            let found = admin.get(&path).await?;
            ensure!(found["status"]["ready"] == true, "{}", found["status"]);
            Ok(())
        })
        .await?;
        let reference = json!({ "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.hypershift.openshift.io",
            "kind": "AzureCluster",
            "name": self.cluster.name,
        } });
        made(admin, &CLUSTERS.named(&namespace, &infra), &reference).await?;
        let mut identity = json!({
            "tenantID": TENANT, "allowedNamespaces": { "list": [namespace] },
        });
        if self.is_managed {
            identity["type"] = json!("UserAssignedIdentityCredential");
            identity["clientID"] = json!("");
            identity["userAssignedIdentityCredentialsCloudType"] = json!("public");
            identity["userAssignedIdentityCredentialsPath"] = json!("/mnt/certs/node-pool");
        } else {
            identity["type"] = json!("WorkloadIdentity");
            identity["clientID"] = json!(client(2));
        }
        let path = IDENTITIES.named(&namespace, self.cluster.name);
        made(admin, &path, &identity).await?;
        Ok(())
    }

    async fn credentials_are_made(&self, admin: &ApiClient) -> Result<()> {
        let namespace = self.cluster.namespace();
        let path = SECRETS.named(&namespace, "cloud-network-config-controller-creds");
        let network = admin.get(&path).await?;
        ensure!(
            network["data"]["azure_client_id"].is_null() == self.is_managed,
            "{path} has another identity"
        );
        for name in [
            "azure-ingress-credentials",
            "azure-image-registry-credentials",
        ] {
            let path = SECRETS.named(&namespace, name);
            let is_made = admin.find(&path).await?.is_some();
            ensure!(is_made != self.is_managed, "{path}: {is_made}");
        }
        let classes = admin.list(&CLASSES.within(&namespace)).await?;
        let mut names: Vec<_> = classes
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str())
            .collect();
        names.sort_unstable();
        let expected: &[&str] = if self.is_managed {
            &["managed-azure-cpo", "managed-azure-nodepool-management"]
        } else {
            &[]
        };
        ensure!(names == expected, "{names:?}");
        for class in &classes {
            let parameters = json!({ "parameters": {
                "userAssignedIdentityID": KEY_VAULT_CLIENT.1, "keyvaultName": "vault", "tenantId": TENANT,
            } });
            fields("spec", &class["spec"], &parameters)?;
        }
        Ok(())
    }

    async fn provider_is_made(&self, admin: &ApiClient) -> Result<()> {
        let namespace = self.cluster.namespace();
        let path = DEPLOYMENTS.named(&namespace, "capi-provider");
        let provider = wait::until("the provider", SOON, async || admin.get(&path).await).await?;
        let pod = &provider["spec"]["template"]["spec"];
        let manager = named(&pod["containers"], "manager").context("it has no manager")?;
        for expected in [
            "--feature-gates=MachinePool=false,ASOAPI=false",
            "--disable-controllers-or-webhooks=DisableASOSecretController",
        ] {
            let mut args = manager["args"].as_array().into_iter().flatten();
            ensure!(args.any(|it| it == expected), "{}", manager["args"]);
        }
        let variables: &[(&str, &str)] = if self.is_managed {
            &[KEY_VAULT_CLIENT]
        } else {
            &[
                ("AZURE_FEDERATED_TOKEN_FILE", TOKEN),
                ("AZURE_CLIENT_ID", "00000000-0000-0000-0000-000000000002"),
                ("AZURE_TENANT_ID", TENANT),
            ]
        };
        for (name, expected) in variables {
            let variable = named(&manager["env"], name).with_context(|| format!("no {name}"))?;
            ensure!(variable["value"] == *expected, "{variable}");
        }
        ensure!(
            named(&pod["containers"], PROXY)
                .or(named(&pod["initContainers"], PROXY))
                .is_some(),
            "it has no proxy: {pod}"
        );
        let certificate = named(&pod["volumes"], "nodepool-management-cert");
        ensure!(
            certificate.is_some() == self.is_managed,
            "{}",
            pod["volumes"]
        );
        let minter = named(&pod["initContainers"], "cloud-token-minter");
        ensure!(
            minter.is_none() == self.is_managed,
            "{}",
            pod["initContainers"]
        );
        admin
            .get(&ROLES.named(&namespace, "capi-provider"))
            .await
            .map(drop)
    }

    async fn machines_are_made(&self, admin: &ApiClient) -> Result<()> {
        let namespace = self.cluster.namespace();
        let pool = self.cluster.pool();
        let path = DEPLOYED_MACHINES.named(&namespace, &pool);
        let deployment = wait::until("the MachineDeployment", SOON, async || {
            admin.get(&path).await
        })
        .await?;
        let reference = &deployment["spec"]["template"]["spec"]["infrastructureRef"];
        ensure!(reference["kind"] == "AzureMachineTemplate", "{reference}");
        let template = reference["name"].as_str().unwrap_or_default();
        let image = if self.is_managed {
            json!({ "marketplace": {
                "publisher": "azureopenshift", "offer": "aro4", "sku": "420-v2", "version": "420.0.1",
            } })
        } else {
            json!({ "id": "/images/1" })
        };
        let expected = json!({ "template": { "spec": {
            "vmSize": "Standard_D4s_v5",
            "failureDomain": "2",
            "image": image,
            "networkInterfaces": [{ "subnetName": "nodes" }],
            "osDisk": {
                "osType": "Linux",
                "diskSizeGB": 120,
                "cachingType": "ReadOnly",
                "diffDiskSettings": { "option": "Local" },
                "managedDisk": { "storageAccountType": "StandardSSD_LRS" },
            },
            "securityProfile": { "encryptionAtHost": true },
            "diagnostics": { "boot": { "storageAccountType": "Managed" } },
        } } });
        let found = made(admin, &TEMPLATES.named(&namespace, template), &expected).await?;
        let key = &found["spec"]["template"]["spec"]["sshPublicKey"];
        ensure!(key.as_str().is_some_and(|it| !it.is_empty()), "{key}");
        let owner = &found["metadata"]["annotations"]["hypershift.openshift.io/nodePool"];
        ensure!(*owner == format!("{NAMESPACE}/{pool}"), "{owner}");
        let cluster = self.cluster.path();
        let pool = NODE_POOLS.named(NAMESPACE, &pool);
        for (path, kind) in [
            (&cluster, "ValidConfiguration"),
            (&cluster, "SupportedHostedCluster"),
            (&cluster, "PlatformCredentialsFound"),
            (&pool, "ValidPlatformImage"),
            (&pool, "ValidMachineTemplate"),
        ] {
            is_true(admin, path, kind).await?;
        }
        self.cluster.has_platform(admin).await
    }
}

/// The client ID of an identity.
fn client(number: u8) -> String {
    format!("00000000-0000-0000-0000-{number:012}")
}
