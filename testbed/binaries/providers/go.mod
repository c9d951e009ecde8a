// The providers whose CRDs are derived and tried, but whose programs are not built: their part of the version table.
// There is no tools.go: downloading the modules is enough.
module hypershift.openshift.io/e2e/binaries/providers

go 1.25.8

require (
	sigs.k8s.io/cluster-api-provider-aws/v2 v2.13.0
	sigs.k8s.io/cluster-api-provider-gcp v1.13.1
)
