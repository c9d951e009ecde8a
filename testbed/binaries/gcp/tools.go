//go:build tools

// Package tools keeps the programs that the testbed builds in this module's requirements.
package tools

import (
	_ "sigs.k8s.io/cluster-api-provider-gcp"
)
