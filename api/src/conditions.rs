//! The types and common reasons of conditions, as closed sets.
//!
//! Which conditions exist is part of the API: users and programs wait for them by name.

#[cfg(feature = "types")]
mod read;

#[cfg(feature = "types")]
pub use read::{ReadCondition, Status, find, status};

/// Declares a closed set of names.
macro_rules! names {
    ($(#[$doc:meta])* $set:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $set {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $set {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name, as in the `type` of a condition.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The one of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == name)
            }
        }

        impl AsRef<str> for $set {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// Conditions of a HostedCluster and of its HostedControlPlane. Most of the latter's are copied to the former.
    ClusterCondition {
        /// The control plane can be used.
        Available = "Available",
        /// A release or a configuration is being rolled out.
        Progressing = "Progressing",
        /// Something works less well than it should.
        Degraded = "Degraded",
        /// The cluster is reconciled: it is not paused.
        ReconciliationActive = "ReconciliationActive",
        /// The last reconciliation completed.
        ReconciliationSucceeded = "ReconciliationSucceeded",
        /// The reconciliation of the hosted cluster's resources completed.
        ConfigOperatorReconciliationSucceeded = "ConfigOperatorReconciliationSucceeded",
        /// The services that lead to the control plane have their addresses.
        InfrastructureReady = "InfrastructureReady",
        /// The names of those services resolve.
        ExternalDnsReachable = "ExternalDNSReachable",
        /// The API server responds.
        KubeApiServerAvailable = "KubeAPIServerAvailable",
        /// Etcd has a quorum.
        EtcdAvailable = "EtcdAvailable",
        /// The configuration of an unmanaged etcd is complete.
        UnmanagedEtcdAvailable = "UnmanagedEtcdAvailable",
        /// A member of etcd is being replaced.
        EtcdRecoveryActive = "EtcdRecoveryActive",
        /// The last backup of etcd was written.
        EtcdBackupSucceeded = "EtcdBackupSucceeded",
        /// Etcd was restored from a snapshot. On the control plane only.
        EtcdSnapshotRestored = "EtcdSnapshotRestored",
        /// All that etcd holds is encrypted with the key in force; see [`EncryptionReason`].
        EtcdDataEncryptionUpToDate = "EtcdDataEncryptionUpToDate",
        /// The cluster version operator was stopped. On the control plane only.
        CvoScaledDown = "CVOScaledDown",
        /// The control plane's configuration is valid.
        ValidHostedControlPlaneConfiguration = "ValidHostedControlPlaneConfiguration",
        /// The release contains all that is needed of it.
        ValidReleaseInfo = "ValidReleaseInfo",
        /// The identity providers are valid.
        ValidIdpConfiguration = "ValidIDPConfiguration",
        /// Nodes reach the control plane through the tunnel.
        DataPlaneConnectionAvailable = "DataPlaneConnectionAvailable",
        /// Pods on nodes reach the API server.
        ControlPlaneConnectionAvailable = "ControlPlaneConnectionAvailable",
        /// The guest's cluster version operator succeeds.
        ClusterVersionSucceeding = "ClusterVersionSucceeding",
        /// The guest's cluster version operator fails. On the control plane only.
        ClusterVersionFailing = "ClusterVersionFailing",
        /// The guest may be upgraded to the next minor version.
        ClusterVersionUpgradeable = "ClusterVersionUpgradeable",
        /// The guest's cluster version operator is rolling out a release.
        ClusterVersionProgressing = "ClusterVersionProgressing",
        /// The guest has rolled out a release once.
        ClusterVersionAvailable = "ClusterVersionAvailable",
        /// The guest's cluster version operator took the release.
        ClusterVersionReleaseAccepted = "ClusterVersionReleaseAccepted",
        /// The guest knows which updates there are.
        ClusterVersionRetrievedUpdates = "ClusterVersionRetrievedUpdates",
        /// The specification makes sense.
        ValidConfiguration = "ValidConfiguration",
        /// This operator can run such a cluster.
        SupportedHostedCluster = "SupportedHostedCluster",
        /// The release image can be had and is supported.
        ValidReleaseImage = "ValidReleaseImage",
        /// The release image is one that the ignition server can use. On the control plane only.
        IgnitionServerValidReleaseInfo = "IgnitionServerValidReleaseInfo",
        /// The proxy's settings are valid.
        ValidProxyConfiguration = "ValidProxyConfiguration",
        /// The OIDC documents could be published.
        ValidOidcConfiguration = "ValidOIDCConfiguration",
        /// The platform's credentials are there.
        PlatformCredentialsFound = "PlatformCredentialsFound",
        /// New machines find their configuration.
        IgnitionEndpointAvailable = "IgnitionEndpointAvailable",
        /// Nodes are made as pods need them.
        AutoNodeEnabled = "AutoNodeEnabled",
        /// The control plane can be reached from the internet.
        PublicEndpointExposed = "PublicEndpointExposed",
        /// The cluster is gone, and kept only for its grace period.
        HostedClusterDestroyed = "HostedClusterDestroyed",
        /// The cluster was restored from a backup.
        HostedClusterRestoredFromBackup = "HostedClusterRestoredFromBackup",
        /// What the guest made in the cloud is removed.
        CloudResourcesDestroyed = "CloudResourcesDestroyed",
        /// AWS takes the identity provider's tokens.
        ValidAwsIdentityProvider = "ValidAWSIdentityProvider",
        /// The key of AWS KMS encrypts.
        ValidAwsKmsConfig = "ValidAWSKMSConfig",
        /// The key of Azure Key Vault encrypts.
        ValidAzureKmsConfig = "ValidAzureKMSConfig",
        /// The workers' default security group is there.
        AwsDefaultSecurityGroupCreated = "AWSDefaultSecurityGroupCreated",
        /// The workers' default security group is gone.
        AwsDefaultSecurityGroupDeleted = "AWSDefaultSecurityGroupDeleted",
        /// The endpoint in the guest's network is there.
        AwsEndpointAvailable = "AWSEndpointAvailable",
        /// The endpoint service of the management cluster is there.
        AwsEndpointServiceAvailable = "AWSEndpointServiceAvailable",
        /// All parts of Azure's private link are there.
        AzurePrivateLinkServiceAvailable = "AzurePrivateLinkServiceAvailable",
        /// The private link service is made.
        AzurePlsCreated = "AzurePLSCreated",
        /// The internal load balancer is found.
        AzureInternalLoadBalancerAvailable = "AzureInternalLoadBalancerAvailable",
        /// The private endpoint is there.
        AzurePrivateEndpointAvailable = "AzurePrivateEndpointAvailable",
        /// The private names resolve.
        AzurePrivateDnsAvailable = "AzurePrivateDNSAvailable",
        /// The settings of workload identity federation on Google Cloud are complete.
        ValidGcpWorkloadIdentity = "ValidGCPWorkloadIdentity",
        /// The files by which components authenticate to Google Cloud are written.
        ValidGcpCredentials = "ValidGCPCredentials",
        /// The endpoint of Private Service Connect in the guest's network is there.
        GcpEndpointAvailable = "GCPEndpointAvailable",
        /// The service attachment of the management cluster is there.
        GcpServiceAttachmentAvailable = "GCPServiceAttachmentAvailable",
        /// The virtual machines' network carries the guest's packets.
        ValidKubeVirtInfraNetworkMtu = "ValidKubeVirtInfraNetworkMTU",
        /// The virtual machines can move between hosts while they run.
        KubeVirtNodesLiveMigratable = "KubeVirtNodesLiveMigratable",
        /// Network policies may be written where the virtual machines are.
        ValidKubeVirtInfraNetworkPolicyRbac = "ValidKubeVirtInfraNetworkPolicyRBAC",
        /// The cluster's size is known.
        ClusterSizeComputed = "ClusterSizeComputed",
        /// Another size would fit, and has to wait.
        ClusterSizeTransitionPending = "ClusterSizeTransitionPending",
        /// Another size is needed.
        ClusterSizeTransitionRequired = "ClusterSizeTransitionRequired",
        /// The cluster's Cluster API objects are in the private groups.
        PrivateCapiTypes = "PrivateCAPITypes",
    }
}

names! {
    /// Conditions of a NodePool.
    PoolCondition {
        /// The cluster autoscaler chooses the number of nodes.
        AutoscalingEnabled = "AutoscalingEnabled",
        /// The settings of upgrades are valid.
        UpdateManagementEnabled = "UpdateManagementEnabled",
        /// The release image can be had and is supported.
        ValidReleaseImage = "ValidReleaseImage",
        /// The release has images of the pool's architecture.
        ValidArchPlatform = "ValidArchPlatform",
        /// The pool is reconciled: it is not paused.
        ReconciliationActive = "ReconciliationActive",
        /// The pool's version is compatible with that of the control plane.
        SupportedVersionSkew = "SupportedVersionSkew",
        /// The nodes' configuration is valid.
        ValidMachineConfig = "ValidMachineConfig",
        /// The nodes' tuning is valid.
        ValidTuningConfig = "ValidTuningConfig",
        /// A configuration is being rolled out.
        UpdatingConfig = "UpdatingConfig",
        /// A release is being rolled out.
        UpdatingVersion = "UpdatingVersion",
        /// A change of the platform's settings is being rolled out.
        UpdatingPlatformMachineTemplate = "UpdatingPlatformMachineTemplate",
        /// The nodes' configuration is rendered.
        ValidGeneratedPayload = "ValidGeneratedPayload",
        /// A machine has fetched its configuration.
        ReachedIgnitionEndpoint = "ReachedIgnitionEndpoint",
        /// New machines find their configuration.
        IgnitionEndpointAvailable = "IgnitionEndpointAvailable",
        /// All machines are ready.
        AllMachinesReady = "AllMachinesReady",
        /// All nodes are healthy.
        AllNodesHealthy = "AllNodesHealthy",
        /// The pool is as it should be.
        Ready = "Ready",
        /// Machines with unhealthy nodes are replaced.
        AutorepairEnabled = "AutorepairEnabled",
        /// The platform has the image that machines start from.
        ValidPlatformImage = "ValidPlatformImage",
        /// The platform's settings are valid.
        ValidPlatformConfig = "ValidPlatformConfig",
        /// The machines' template is valid.
        ValidMachineTemplate = "ValidMachineTemplate",
        /// The workers' default security group is there.
        AwsSecurityGroupAvailable = "AWSSecurityGroupAvailable",
        /// A tag of the pool and one of the cluster contradict each other.
        AwsResourceTagConflict = "AWSResourceTagConflict",
        /// The networks of the guest and of the virtual machines overlap.
        ClusterNetworkCidrConflict = "ClusterNetworkCIDRConflict",
        /// The virtual machines can move between hosts while they run.
        KubeVirtNodesLiveMigratable = "KubeVirtNodesLiveMigratable",
        /// The performance profile is in use.
        PerformanceAvailable = "performance.operator.openshift.io/Available",
        /// The performance profile is being rolled out.
        PerformanceProgressing = "performance.operator.openshift.io/Progressing",
        /// The performance profile blocks no upgrade.
        PerformanceUpgradeable = "performance.operator.openshift.io/Upgradeable",
        /// The performance profile does not work as it should.
        PerformanceDegraded = "performance.operator.openshift.io/Degraded",
    }
}

names! {
    /// Conditions of a `ControlPlaneComponent`.
    ComponentCondition {
        /// The component does its work.
        Available = "Available",
        /// All of the component is of the wanted release.
        RolloutComplete = "RolloutComplete",
    }
}

names! {
    /// Reasons that conditions of several types have.
    CommonReason {
        /// All is well.
        AsExpected = "AsExpected",
        /// The responsible controller has not reported yet.
        StatusUnknown = "StatusUnknown",
        /// An observed object does not exist.
        NotFound = "NotFound",
        /// Something is there and does not work yet.
        WaitingForAvailable = "WaitingForAvailable",
        /// A referenced Secret does not exist.
        SecretNotFound = "SecretNotFound",
        /// The requested configuration is invalid.
        InvalidConfiguration = "InvalidConfiguration",
        /// An image cannot be had or used.
        InvalidImage = "InvalidImage",
        /// A condition blocks progress until a user resolves it.
        Blocked = "Blocked",
        /// Other components have to be rolled out first.
        WaitingForDependencies = "WaitingForDependencies",
        /// A step failed and is tried again.
        ReconciliationError = "ReconciliationError",
        /// The objects of a component are not ready.
        WaitingForOperands = "WaitingForOperands",
        /// So many machines are unhealthy that none is replaced.
        TooManyUnhealthy = "TooManyUnhealthy",
    }
}

names! {
    /// Reasons of [`ClusterCondition::EtcdDataEncryptionUpToDate`], in the order in which a key takes effect.
    EncryptionReason {
        /// API servers learn to read with the new key.
        ReadOnlyRolloutInProgress = "ReadOnlyRolloutInProgress",
        /// API servers begin to write with the new key.
        WritePromotionInProgress = "WritePromotionInProgress",
        /// Not all API servers write with the new key yet.
        WaitingForConvergence = "ReEncryptionWaitingForKASConvergence",
        /// Stored resources are being rewritten.
        InProgress = "ReEncryptionInProgress",
        /// All stored resources are encrypted with the new key.
        Completed = "ReEncryptionCompleted",
        /// Stored resources could not be rewritten.
        Failed = "ReEncryptionFailed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_found_by_name() {
        for condition in ClusterCondition::ALL {
            assert_eq!(
                ClusterCondition::from_name(condition.as_str()),
                Some(*condition)
            );
        }
        for condition in PoolCondition::ALL {
            assert_eq!(
                PoolCondition::from_name(condition.as_str()),
                Some(*condition)
            );
        }
        assert_eq!(CommonReason::from_name("asexpected"), None);
    }

    #[test]
    fn condition_names_are_valid() {
        let types = ClusterCondition::ALL.iter().map(AsRef::as_ref);
        let types = types.chain(PoolCondition::ALL.iter().map(AsRef::as_ref));
        let reasons = CommonReason::ALL.iter().map(AsRef::as_ref);
        let reasons = reasons.chain(EncryptionReason::ALL.iter().map(AsRef::as_ref));
        for name in types.chain(reasons) {
            let name: &str = name;
            let last = name.rsplit('/').next().unwrap_or_default();
            assert!(last.starts_with(|c: char| c.is_ascii_uppercase()), "{name}");
            assert!(last.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        }
    }
}
