//go:build tools

// Package tools keeps the program that the testbed builds in this module's requirements.
package tools

import (
	_ "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager"
)
