//! The clouds of Azure, which differ in their endpoints.

/// A cloud.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cloud {
    /// The public one.
    #[default]
    Public,
    /// Of the government of the United States.
    UsGovernment,
    /// Of China.
    China,
    /// Of France.
    Bleu,
}

/// The URLs of a cloud's services, without a slash at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// Microsoft Entra ID.
    pub authority: &'static str,
    /// Azure Resource Manager.
    pub management: &'static str,
    /// Microsoft Graph.
    pub graph: &'static str,
}

// === impl Cloud ===

impl Cloud {
    /// The cloud with this name in flags and objects of HyperShift.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "AzurePublicCloud" => Some(Self::Public),
            "AzureUSGovernmentCloud" => Some(Self::UsGovernment),
            "AzureChinaCloud" => Some(Self::China),
            "AzureBleuCloud" => Some(Self::Bleu),
            _ => None,
        }
    }

    /// Its services.
    pub fn endpoints(self) -> Endpoints {
        match self {
            Self::Public => Endpoints {
                authority: "https://login.microsoftonline.com",
                management: "https://management.azure.com",
                graph: "https://graph.microsoft.com",
            },
            Self::UsGovernment => Endpoints {
                authority: "https://login.microsoftonline.us",
                management: "https://management.usgovcloudapi.net",
                graph: "https://graph.microsoft.us",
            },
            Self::China => Endpoints {
                authority: "https://login.chinacloudapi.cn",
                management: "https://management.chinacloudapi.cn",
                graph: "https://microsoftgraph.chinacloudapi.cn",
            },
            Self::Bleu => Endpoints {
                authority: "https://login.sovcloud-identity.fr",
                management: "https://management.sovcloud-api.fr",
                graph: "https://graph.svc.sovcloud.fr",
            },
        }
    }
}

// === impl Endpoints ===

impl Endpoints {
    /// What tokens for Azure Resource Manager are for.
    pub fn management_scope(&self) -> String {
        format!("{}/.default", self.management)
    }

    /// What tokens for Microsoft Graph are for.
    pub fn graph_scope(&self) -> String {
        format!("{}/.default", self.graph)
    }
}
