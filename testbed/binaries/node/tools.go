//go:build tools

// Package tools keeps the programs that the testbed builds in this module's requirements.
package tools

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
)
