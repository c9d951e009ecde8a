//! The intended differences from the reference facts, each with its reason.

/// Intended differences: component, path (with wildcards `*`) and reason.
pub(super) const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "*",
        "Deployment/* spec.template.spec.containers[kas-readiness-check].command[2]",
        "it ends on SIGTERM: otherwise pods take all of their 120 s to end",
    ),
    (
        "*",
        "PodDisruptionBudget/* spec.maxUnavailable",
        "the API always has an availability policy",
    ),
    (
        "*",
        "PrometheusRule/* spec.groups*.expression*",
        "PromQL is described there, and written here",
    ),
    (
        "etcd",
        "StatefulSet/etcd spec.template.spec.containers[etcd-defrag]*",
        "the API's availability policy is HighlyAvailable",
    ),
    (
        "etcd",
        "Role/etcd-defrag-controller *",
        "the API's availability policy is HighlyAvailable",
    ),
    (
        "etcd",
        "RoleBinding/etcd-defrag-controller *",
        "the API's availability policy is HighlyAvailable",
    ),
    (
        "etcd",
        "ControlPlaneComponent/etcd status.resources[etcd-defrag-controller]*",
        "the API's availability policy is HighlyAvailable",
    ),
    (
        "etcd",
        "StatefulSet/etcd spec.template.spec.initContainers[ensure-dns]*",
        "the image holds no shell, so its program is called directly",
    ),
    (
        "etcd",
        "StatefulSet/etcd spec.template.spec.initContainers[reset-member].env*",
        "the script names what it uses",
    ),
    (
        "*-apiserver",
        "Deployment/* spec.template.spec.initContainers[wait-for-etcd]*",
        "our program resolves the name, so that no shell is needed",
    ),
    (
        "kube-apiserver",
        "Secret/bootstrap-kubeconfig data.kubeconfig@yaml.clusters[cluster].cluster.server",
        "AWS always has an endpointAccess in the API; Private is the one whose addresses are like those of none",
    ),
    (
        "kube-*",
        "Secret/kube-*-kubeconfig data.kubeconfig@yaml.users[admin].user*",
        "a kubeconfig without a user is no use: we wait for the certificate",
    ),
    (
        "kube-controller-manager",
        "ConfigMap/recycler-config data[recycler-pod.yaml]@yaml.spec.containers[recycler-container].args[1]",
        "a script of our own that does the same",
    ),
    (
        "*",
        "Deployment/* spec.template.spec.serviceAccount",
        "the old name of serviceAccountName, which the API server sets by itself",
    ),
    (
        "ignition-server",
        "Deployment/ignition-server *livenessProbe.httpGet*",
        "probes have a port of their own: connections of others do not fail them",
    ),
    (
        "ignition-server",
        "Deployment/ignition-server *readinessProbe.httpGet*",
        "probes have a port of their own: connections of others do not fail them",
    ),
    (
        "powervs-cloud-controller-manager",
        "Deployment/powervs-cloud-controller-manager spec.template.metadata.labels.app",
        "all pods of a control plane have the label",
    ),
    (
        "ignition-server",
        "Route/ignition-server *",
        "AWS always has an endpointAccess in the API; a private one has a name in the cluster's own network",
    ),
    (
        "ignition-server",
        "Deployment/ignition-server spec.template.spec.containers[ignition-server].args*",
        "it is started with the name of its control plane: the namespace may have two",
    ),
    (
        "ignition-server",
        "Role/ignition-server rules[2].apiGroups[1]",
        "Events are written in that group, too",
    ),
    (
        "hosted-cluster-config-operator",
        "Role/hosted-cluster-config-operator rules[10]*",
        "failures are reported as Events",
    ),
    (
        "*",
        "Deployment/* metadata.labels[hypershift.openshift.io/uses-capi]",
        "a migration finds what uses Cluster API by a label",
    ),
    (
        "router",
        "ConfigMap/router data[haproxy.cfg]*",
        "HAProxy's configuration is described there, and written here",
    ),
    (
        "router",
        "ControlPlaneComponent/router status.conditions[RolloutComplete].reason",
        "the renderer takes dependencies for fulfilled",
    ),
    (
        "oauth-openshift",
        "Secret/oauth-openshift-default-*-template data[*.html]",
        "pages of our own with the same variables",
    ),
    (
        "olm-collect-profiles",
        "ControlPlaneComponent/olm-collect-profiles status*",
        "a CronJob is complete when it is applied, and the renderer applies nothing",
    ),
    (
        "redhat-operators-catalog",
        "ImageStream/catalogs spec.tags*.from.name",
        "the index is that of the release's version; there, a label of its image has another one",
    ),
    (
        "metrics-proxy",
        "Route/metrics-proxy *",
        "AWS always has an endpointAccess in the API; a private one has a name in the cluster's own network",
    ),
    (
        "metrics-proxy",
        "Deployment/metrics-proxy spec.template.spec.volumes[*].secret.items*",
        "the proxy trusts authorities and does not get their keys",
    ),
    (
        "*",
        "Deployment/* spec.template.spec.initContainers[cloud-token-minter].startupProbe*",
        "the image holds no shell; the API server of a new cluster can take many minutes",
    ),
    (
        "*",
        "Secret/*-service-account-kubeconfig *",
        "nothing is signed there, so the Secret has neither owner nor label",
    ),
    (
        "azure-cloud-controller-manager",
        "*/azure-cloud-config data[cloud.conf]@json.cloud",
        "the API always has a cloud",
    ),
    (
        "gcp-cloud-controller-manager",
        "ConfigMap/gcp-cloud-config data[cloud.conf]@ini.Global.project-id",
        "the API does not offer the platform",
    ),
    (
        "gcp-cloud-controller-manager",
        "ConfigMap/gcp-cloud-config data[cloud.conf]@ini.Global.network-name",
        "the API does not offer the platform",
    ),
    (
        "openstack-cloud-controller-manager",
        "Deployment/openstack-cloud-controller-manager *volumes[secret-occm].secret.secretName",
        "the API does not offer the platform",
    ),
    (
        "openstack-cloud-controller-manager",
        "Deployment/openstack-cloud-controller-manager *.env[OCP_INFRASTRUCTURE_NAME].value",
        "an empty value is written",
    ),
    (
        "powervs-cloud-controller-manager",
        "Deployment/powervs-cloud-controller-manager *volumes[cloud-creds].secret.secretName",
        "the API always has a name",
    ),
    (
        "aws-node-termination-handler",
        "Deployment/aws-node-termination-handler *.env[AWS_REGION].value",
        "an empty value is written",
    ),
    (
        "aws-node-termination-handler",
        "Deployment/aws-node-termination-handler *ontainers[token-minter-kube]*",
        "the program exits without a token, so the minter starts before it; the image holds no shell",
    ),
    (
        "aws-node-termination-handler",
        "Deployment/aws-node-termination-handler *[root-ca]*",
        "the certificate authority is mounted, so that no shell copies it from the kubeconfig",
    ),
    (
        "kubevirt-csi-controller",
        "Deployment/kubevirt-csi-controller spec.template.spec.serviceAccountName",
        "serviceAccount is the old name of it",
    ),
    (
        "*",
        "Deployment/* spec.template.spec.initContainers[apiserver-token-minter].startupProbe*",
        "the image holds no shell; the API server of a new cluster can take many minutes",
    ),
    (
        "*",
        "Deployment/* spec.template.spec.volumes[ca-bundle].secret.items*",
        "the private key of the authority is not mounted",
    ),
    (
        "cluster-network-operator",
        "Deployment/cluster-network-operator *.env[APISERVER_OVERRIDE_*].value",
        "AWS always has an endpointAccess in the API; Private has a name in the cluster's own network",
    ),
    (
        "cluster-network-operator",
        "Deployment/cluster-network-operator *.env[PROXY_INTERNAL_APISERVER_ADDRESS]*",
        "AWS always has an endpointAccess in the API; the name of a private API server needs no proxy",
    ),
];
