// Kinds of a hosted cluster that are not in OpenShift's own module, and of which only the CRDs are used: their part of the
// version table. There is no tools.go: downloading the modules is enough.
module hypershift.openshift.io/e2e/binaries/guest-crds

go 1.25.0

require (
	github.com/kubernetes-csi/external-snapshotter/client/v8 v8.4.0
	github.com/operator-framework/api v0.45.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
