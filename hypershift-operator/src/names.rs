//! Names and keys of objects of a HostedCluster. They are API: other programs use them.

pub(crate) mod node_pool;

/// Kubernetes' limit of the value of a label; names of objects may be longer.
pub(crate) const LONGEST_LABEL: usize = 63;
/// Field manager of ownership annotations and of the condition about the owner.
pub(crate) const SCOPE_FIELD_MANAGER: &str = "hypershift-operator-scope";
/// Field manager of everything else that belongs to a hosted cluster.
pub(crate) const FIELD_MANAGER: &str = "hypershift-operator";
/// Annotation: the hosted cluster that an object belongs to, as `<namespace>/<name>`.
pub(crate) const CLUSTER: &str = ownership::CLUSTER_ANNOTATION;
/// Label of objects that this operator manages for hosted clusters. They are watched by it.
pub(crate) const MANAGED_BY: &str = "hypershift.openshift.io/managed-by";
/// Value of [`MANAGED_BY`].
pub(crate) const OPERATOR: &str = "hypershift-operator";
/// Label of pods that may speak to the management cluster's API server.
pub(crate) const NEED_MANAGEMENT_API: &str = "hypershift.openshift.io/need-management-kas-access";
/// Annotation of a Namespace with Agents: the namespaces whose HostedClusters may use them, separated by commas.
pub(crate) const AGENT_CONSUMERS: &str = "hypershift.openshift.io/agent-consumer-namespaces";
/// Annotation of the binding for Agents: their namespace has consented, so that the binding itself is no consent.
pub(crate) const AGENT_CONSENT: &str = "hypershift.openshift.io/agent-consent";
/// Label of the role and of the binding for Agents.
pub(crate) const AGENT_RBAC: &str = "hypershift.openshift.io/capi-provider-agent-rbac";
/// Finalizer of a HostedCluster: its objects are deleted first.
pub(crate) const FINALIZER: &str = "hypershift.openshift.io/finalizer";
/// Finalizer of Deployments that have to outlive the objects which they clean up after.
pub(crate) const COMPONENT_FINALIZER: &str = "hypershift.openshift.io/component-finalizer";
/// Annotation of a control plane's namespace: the user of its pods, if the management cluster does not choose one.
pub(crate) const USER: &str = "hypershift.openshift.io/default-security-context-uid";
/// Annotation: the control plane was available once.
pub(crate) const HAS_BEEN_AVAILABLE: &str = "hypershift.openshift.io/HasBeenAvailable";

/// Secret with credentials for registries.
pub(crate) const PULL_SECRET: &str = "pull-secret";
/// Secret with the nodes' SSH key.
pub(crate) const SSH_KEY: &str = "ssh-key";
/// `ConfigMap` with authorities that are trusted in addition.
pub(crate) const TRUST_BUNDLE: &str = "user-ca-bundle";
/// Secret with the key that signs tokens of service accounts.
pub(crate) const SIGNING_KEY: &str = "sa-signing-key";
/// Secret with the administrator's kubeconfig.
pub(crate) const ADMIN_KUBECONFIG: &str = "admin-kubeconfig";
/// Key of Secrets that hold a kubeconfig.
pub(crate) const KUBECONFIG_KEY: &str = "kubeconfig";
/// Secret with the serving certificate that managers ask for.
pub(crate) const WEBHOOK_TLS: &str = "capi-webhooks-tls";
/// Secret with the kubeconfig of the cluster that virtual machines run on.
pub(crate) const KUBEVIRT_CREDENTIALS: &str = "kubevirt-infra-credentials";

/// The Deployment of the control-plane-operator.
pub(crate) const CONTROL_PLANE_OPERATOR: &str = "control-plane-operator";
/// The Deployment of Cluster API's own controllers.
pub(crate) const CLUSTER_API: &str = "cluster-api";
/// The Deployment of the platform's controllers.
pub(crate) const CAPI_PROVIDER: &str = "capi-provider";
/// The Deployment of the program that makes Karpenter run, and the name of its objects.
pub(crate) const KARPENTER_OPERATOR: &str = "karpenter-operator";
/// The Deployment of Karpenter.
pub(crate) const KARPENTER: &str = "karpenter";
/// Secret with Karpenter's credentials on AWS.
pub(crate) const KARPENTER_CREDENTIALS: &str = "karpenter-credentials";
/// Finalizer of a HostedControlPlane: the machines of Karpenter are deleted first.
pub(crate) const KARPENTER_FINALIZER: &str = "hypershift.openshift.io/karpenter-finalizer";
/// ConfigMap with the taint of nodes that have just joined, which Karpenter removes.
pub(crate) const KARPENTER_TAINT: &str = "set-karpenter-taint";
/// ConfigMap with the subnets of Karpenter's machines, which private links lead to.
pub(crate) const KARPENTER_SUBNETS: &str = "karpenter-subnets";
/// Key in it: a list in JSON.
pub(crate) const KARPENTER_SUBNETS_KEY: &str = "subnetIDs";
/// Prefix of ConfigMaps with the settings of the kubelets of a class of its machines, before the name of the class.
pub(crate) const KARPENTER_KUBELET: &str = "karpenter-kubelet-";
/// Value of [`MANAGED_BY`] that the ConfigMap has.
pub(crate) const KARPENTER_MANAGER: &str = "karpenter";
/// Secret with the kubeconfig by which operators of the control plane act in the hosted cluster.
pub(crate) const OPERATOR_KUBECONFIG: &str = "hcco-kubeconfig";
/// The Deployment of the hosted API server.
pub(crate) const KUBE_API_SERVER: &str = "kube-apiserver";
/// The role by which managers read CRDs; it is the same for all hosted clusters.
pub(crate) const CRD_READER: &str = "hypershift-cluster-api";

/// Name of the binding of [`CRD_READER`] for one control plane.
pub(crate) fn crd_reader_binding(namespace: &str) -> String {
    format!("{CRD_READER}-{namespace}")
}

/// Name of the role that lets the platform's controllers of a control plane use Agents, in the namespace of the Agents.
pub(crate) fn agent_role(namespace: &str) -> String {
    format!("{CAPI_PROVIDER}-role-{namespace}")
}

/// Name of the binding of that role.
pub(crate) fn agent_binding(namespace: &str) -> String {
    format!("cluster-api-agent-{namespace}")
}

/// Name of both in earlier versions of this operator.
pub(crate) fn earlier_agent_rbac(namespace: &str) -> String {
    format!("{CAPI_PROVIDER}-{namespace}")
}

/// Name of the role and of the binding that let the storage driver of a control plane on KubeVirt read volumes.
pub(crate) fn kubevirt_csi_role(namespace: &str) -> String {
    format!("{namespace}-kubevirt-csi-cluster")
}

/// The PKI operator of a control plane.
pub(crate) const PKI_OPERATOR: &str = "control-plane-pki-operator";
/// The role by which PKI operators read and change certificate signing requests; the installer creates it.
pub(crate) const PKI_OPERATOR_ROLE: &str = "hypershift-control-plane-pki-operator";

/// Names of the role and of the binding that let the PKI operator of a control plane approve, and sign. With a prefix, so
/// that no choice of a cluster's name takes the place of a role that is not of a hosted cluster.
pub(crate) fn signer_roles(namespace: &str) -> [String; 2] {
    ["approver", "signer"].map(|role| format!("hypershift-csr-{role}-{namespace}"))
}

/// Name of the binding of [`PKI_OPERATOR_ROLE`] for one control plane.
pub(crate) fn pki_operator_binding(namespace: &str) -> String {
    format!("{PKI_OPERATOR_ROLE}-{namespace}")
}

/// The copy of the administrator's kubeconfig beside the HostedCluster.
pub(crate) fn admin_kubeconfig_copy(cluster: &str) -> String {
    format!("{cluster}-admin-kubeconfig")
}

/// The copy of the kubeconfig with the user's custom name.
pub(crate) fn custom_kubeconfig_copy(cluster: &str) -> String {
    format!("{cluster}-custom-admin-kubeconfig")
}

/// The copy of the password of `kubeadmin`.
pub(crate) fn password_copy(cluster: &str) -> String {
    format!("{cluster}-kubeadmin-password")
}
