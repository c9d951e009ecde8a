//go:build tools

// Package tools keeps the programs that the testbed builds in this module's requirements.
package tools

import (
	_ "github.com/aws/karpenter-provider-aws/cmd/controller"
)
